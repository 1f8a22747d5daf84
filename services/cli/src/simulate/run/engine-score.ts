// Logprobs of answers under two versions, from the engine itself: the KL to the base, estimated on the answers of a version.

import { z } from 'zod';
import type { Answer } from '../../endpoint.js';
import { CliErrors } from '../../errors.js';
import { inParallel } from './in-parallel.js';

const entry = z.record(z.string(), z.object({ logprob: z.number() })).nullable();
const schema = z.object({ choices: z.array(z.object({ prompt_logprobs: z.array(entry) })).min(1) });
const scoreWithinMs = 120_000;
const parallel = 4;

/** Sum of the answer's logprobs at temperature 1, in nats. */
async function answerLogprob(engine: string, model: string, { promptIds, answerIds }: Answer): Promise<number> {
  const response = await fetch(`${engine}/v1/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model, prompt: [...promptIds, ...answerIds], max_tokens: 1, temperature: 0, prompt_logprobs: 0 }),
    signal: AbortSignal.timeout(scoreWithinMs),
  });
  if (!response.ok) throw CliErrors.refused({ what: 'Scoring', status: response.status, why: await response.text() });
  const [choice] = schema.parse(await response.json()).choices;
  const positions = choice?.prompt_logprobs.slice(promptIds.length) ?? [];
  return positions.reduce((sum, position, index) => sum + (position?.[String(answerIds[index])]?.logprob ?? 0), 0);
}

/**
 * Mean of log π(y) − log π_base(y) over answers sampled from π: nats an answer, at temperature 1.
 *
 * @param version the version that gave the answers
 */
export async function klToBase(engine: string, version: string, base: string, answers: readonly Answer[]): Promise<number> {
  const usable = answers.filter(({ promptIds, answerIds }) => promptIds.length > 0 && answerIds.length > 0);
  const ratios = await inParallel(usable, parallel, async (answer) => {
    const [own, other] = await Promise.all([answerLogprob(engine, version, answer), answerLogprob(engine, base, answer)]);
    return own - other;
  });
  return ratios.reduce((sum, ratio) => sum + ratio, 0) / Math.max(1, ratios.length);
}
