// What one unit of the experiment found, and where it is kept: a JSON file each, so that a stopped run goes on where it was.
// A file that cannot be read is none: its unit is run again.
import { existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus } from 'node:os';
import { join } from 'node:path';
import type { TrainingDevice } from '@backtalk/deploy';
import { sha256Hex } from '@backtalk/kit';
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
  /** Answers that it rests on, sampled as they are scored; results of before have none, and sampled theirs at another temperature. */
  klAnswers: z.number().optional(),
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
  /** Digest of the users' files and of what the part has otherwise in its recipe; results of before have none. */
  madeFrom: z.string().optional(),
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
/** What tells one unit from all others. */
export type UnitKey = Pick<UnitResult, 'part' | 'name' | 'seed' | 'madeFrom'>;

/** Of what is kept or drawn of a unit, without an ending: another one for each. */
export function fileNameOf({ part, name, seed }: UnitKey): string {
  const plain = name.replaceAll(/[^\w-]+/g, '_');
  // Two paths may read alike without their slashes and dots.
  const own = /[./]/.test(name) ? `${plain}-${sha256Hex(name).slice(0, 8)}` : plain;
  return `${part}-${own}-${String(seed)}`;
}

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
  /** Paths of what was kept here of units that are still running. */
  private readonly begun = new Set<string>();

  /** @param folder is made when something is kept */
  constructor(private readonly folder: string) {}

  /** Of a unit that came to its end, made from the same; one that was stopped is run again. */
  find(unit: UnitKey): UnitResult | undefined {
    const found = this.read(this.pathOf(unit));
    if (found === undefined || found.stopped) return undefined;
    return found.madeFrom === undefined || found.madeFrom === unit.madeFrom ? found : undefined;
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
    if (result.stopped) this.begun.add(path);
    else this.begun.delete(path);
  }

  /** Of a unit that failed, what it had measured here; what another run kept of it stays. */
  drop(unit: UnitKey): void {
    const path = this.pathOf(unit);
    if (this.begun.delete(path)) rmSync(path);
  }

  private pathOf(unit: UnitKey): string {
    return join(this.folder, `${fileNameOf(unit)}.json`);
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
