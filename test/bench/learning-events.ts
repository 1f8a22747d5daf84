// What the simulation says as JSON lines, as far as the learning benchmark reads it.
import { z } from 'zod';

const share = z.number();
const measured = z.object({
  event: z.literal('measured'),
  name: z.string(),
  kind: z.enum(['version', 'comparison']),
  sessions: z.number(),
  scores: z.object({ obeys: share, hit: share, headline: share, empty: share, looping: share, echo: share }),
  kl: z.number().optional(),
});
const answer = z.object({ event: z.literal('answer'), question: z.string(), answer: z.string(), ended: z.boolean() });
const other = z.object({ event: z.literal('done') });
const schema = z.discriminatedUnion('event', [measured, answer, other]);

export type Measured = z.infer<typeof measured>;

export interface SeedRun {
  readonly user: string;
  readonly seed: string;
  readonly rows: readonly Measured[];
  readonly answers: readonly string[];
  readonly minutes: number;
}

/** Undefined for a line that is none of them. */
export function readEvent(line: string): z.infer<typeof schema> | undefined {
  try {
    return schema.safeParse(JSON.parse(line)).data;
  } catch {
    // Not JSON: a line for people.
    return undefined;
  }
}
