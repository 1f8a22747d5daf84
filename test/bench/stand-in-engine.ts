// The stand-in engine of a machine, as benchmarks steer it: pace of its answers, and how much it has said.
import { z } from 'zod';
import { benchErrors } from './errors.js';

export interface EnginePace {
  /** Milliseconds before each token; 0 says all at once. */
  readonly tokenMs: number;
  readonly answerTokens: number;
}

const counts = z.object({ tokens: z.number(), requests: z.number() });
export type EngineCounts = z.infer<typeof counts>;

export async function setPace(engine: string, pace: EnginePace): Promise<void> {
  const response = await fetch(`${engine}/fake/settings`, { method: 'POST', body: JSON.stringify(pace) });
  if (!response.ok) throw benchErrors.unreadable({ what: 'The answer of the stand-in engine' });
}

export async function countsOf(engine: string): Promise<EngineCounts> {
  return counts.parse(await (await fetch(`${engine}/fake/counts`)).json());
}
