// The KL to the base, estimated on the answers of a version with logprobs from the engine itself.
import type { EngineClient } from '@backtalk/dialects';
import type { Answer } from '../../endpoint.js';

const scoreWithinMs = 300_000;

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

/**
 * Mean of log π(y) − log π_base(y) over answers sampled from π: nats an answer, at temperature 1.
 *
 * @param version the version that gave the answers
 */
export async function klToBase(
  engine: EngineClient,
  version: string,
  base: string,
  answers: readonly Answer[],
): Promise<number> {
  const usable = answers.filter(({ promptIds, answerIds }) => promptIds.length > 0 && answerIds.length > 0);
  const under = (model: string) => engine.score(usable, { model, deadlineMs: scoreWithinMs });
  const own = await under(version);
  const other = await under(base);
  return sum(own.map((logprobs, index) => sum(logprobs) - sum(other[index] ?? []))) / Math.max(1, usable.length);
}
