// What one unit of the experiment found, and where it is kept: a JSON file each, so that a stopped run goes on where it was.
// A file that cannot be read is none: its unit is run again.
import { existsSync, mkdirSync, readFileSync, readdirSync, renameSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus } from 'node:os';
import { join } from 'node:path';
import type { TrainingDevice } from '@backtalk/deploy';
import { z } from 'zod';

const share = z.number();
const scores = z.object({
  obeys: share,
  hit: share,
  headline: share,
  empty: share,
  looping: share,
  echo: share,
});
const row = z.object({
  /** Whose wish and questions these are. */
  of: z.string(),
  /** What answered: a version, or one of the rows to compare with. */
  name: z.string(),
  /** What had been talked about before, such as a user's name. */
  block: z.string(),
  /** Steps of the policy so far. */
  step: z.number(),
  scores,
  /** Since the person had said what they want, without the time of measuring. */
  seconds: z.number().optional(),
  /** Means an answer: tokens of the prompt, and lessons that the model was shown in it. */
  prompt: z.object({ tokens: z.number(), shown: z.number() }).optional(),
  /** KL to the base, nats an answer. */
  kl: z.number().optional(),
  /** Of fixed sentences: mean nats a token, the share of right ones that are likelier than their wrong twins, and which they are. */
  reference: z.object({ nll: z.number(), skill: share, twins: z.array(z.boolean()).optional() }).optional(),
});
const step = z.object({
  version: z.string(),
  /** Why its batch closed. */
  closed: z.string(),
  samples: z.number(),
  effective: z.number(),
  hinted: z.number(),
  stage: z.string(),
  why: z.string(),
  measurements: z.record(z.string(), z.number()),
});
/** As `/v1/lessons` gives it. */
export const lessonSchema = z.object({
  policy: z.string(),
  text: z.string(),
  state: z.string(),
  hints: z.number(),
  progress: z.number().nullable().default(null),
  covered_by: z.string().nullable().default(null),
  waits_for: z.string().nullable().default(null),
});
const unitResult = z.object({
  /** The folder that it is kept in; not in the file. */
  run: z.string().optional(),
  part: z.string(),
  name: z.string(),
  seed: z.number(),
  rows: z.array(row),
  steps: z.array(step),
  lessons: z.array(lessonSchema),
  /** Sessions, and what the people made of the answers. */
  talk: z.array(z.object({ policy: z.string(), sessions: z.number(), corrected: z.number(), praised: z.number() })),
  /** Of the last measurement, as they are. */
  answers: z.array(z.string()),
  minutes: z.number(),
  /** Load average over a minute at the beginning and at the end. */
  load: z.tuple([z.number(), z.number()]),
  /** What it ran on, and when (YYYY-MM-DD): results of several machines are written up together. */
  processor: z.string(),
  day: z.string(),
  /** Of a unit that did not come to its end: what it had measured until then. */
  stopped: z.boolean().default(false),
});

/** Name of a row: the base shown the lessons in force. */
export const shownLessons = 'base shown its lessons';
/** End of a row's name: what serves, shown by the endpoint what it has not learned yet. */
export const reminded = ', reminded';
/** Name of a block, and end of a unit's name: each of two people at a policy of their own. */
export const oneEach = 'one each';

export type Row = z.infer<typeof row>;
export type Step = z.infer<typeof step>;
export type Lesson = z.infer<typeof lessonSchema>;
/** `folder`: where it was read from; units of one folder were measured with the same sizes, and compared in the same run. */
export type UnitResult = z.infer<typeof unitResult> & { readonly folder?: string };

/**
 * This machine, today.
 *
 * @param device where steps compute, if not on the CPU
 */
export function ranOn(device?: Pick<TrainingDevice, 'card'>): Pick<UnitResult, 'processor' | 'day'> {
  const card = device?.card === undefined ? '' : `, steps on ${device.card}`;
  const processor = `${String(availableParallelism())} × ${cpus()[0]?.model ?? 'an unknown CPU'}${card}`;
  return { processor, day: new Date().toISOString().slice(0, 10) };
}

/** Results of one model and one set of sizes. */
export class ResultStore {
  /** @param folder is made when something is kept */
  constructor(private readonly folder: string) {}

  /** Of a unit that came to its end; one that was stopped is run again. */
  find(unit: Pick<UnitResult, 'part' | 'name' | 'seed'>): UnitResult | undefined {
    const found = this.read(this.pathOf(unit));
    return found?.stopped === true ? undefined : found;
  }

  /** In the order of parts, then names. */
  all(): UnitResult[] {
    if (!existsSync(this.folder)) return [];
    const names = readdirSync(this.folder).filter((name) => name.endsWith('.json'));
    return names.sort().flatMap((name) => this.read(join(this.folder, name)) ?? []);
  }

  keep(result: UnitResult): void {
    mkdirSync(this.folder, { recursive: true });
    const path = this.pathOf(result);
    writeFileSync(`${path}.new`, `${JSON.stringify(result, null, 1)}\n`);
    renameSync(`${path}.new`, path);
  }

  private pathOf({ part, name, seed }: Pick<UnitResult, 'part' | 'name' | 'seed'>): string {
    const plain = name.replaceAll(/[^\w-]+/g, '_');
    return join(this.folder, `${part}-${plain}-${String(seed)}.json`);
  }

  private read(path: string): UnitResult | undefined {
    try {
      const { data } = unitResult.safeParse(JSON.parse(readFileSync(path, 'utf8')));
      return data === undefined ? undefined : { ...data, folder: this.folder };
    } catch {
      // Not there, or cut by a stop.
      return undefined;
    }
  }
}
