// Decides whether an answer's tokens may be trained on.
//
// In: a capture. Out: trainable, or every reason why not, from a fixed list. Pure.
// A turn that fails is kept for audit; the reasons are counted.
import type { Capture } from './capture.js';

export const untrainableReasons = [
  'no_prompt_ids',
  'no_token_ids',
  'no_logprobs',
  'no_usage',
  'count_mismatch',
  'logprob_not_finite',
  'aborted',
  'incomplete',
  'several_choices',
] as const;
export type UntrainableReason = (typeof untrainableReasons)[number];

export interface CaptureVerdict {
  readonly trainable: boolean;
  readonly reasons: readonly UntrainableReason[];
}

/** Engines write −9999 where the logprob is −infinity. */
const floorLogprob = -9999;
/** A logprob may stand above zero by rounding only. */
const roundingLogprob = 1e-3;

export function judgeCapture(capture: Capture): CaptureVerdict {
  const { promptIds, answerIds, logprobs, usage, choices } = capture;
  const reasons: UntrainableReason[] = [];
  // Usage counts the tokens of all choices together.
  const isCounted = usage !== undefined && choices <= 1;
  const promptTokens = promptIds?.length ?? usage?.promptTokens;
  const usageDiffers =
    isCounted && (answerIds.length !== usage.completionTokens || promptTokens !== usage.promptTokens);
  if (!promptIds?.length) reasons.push('no_prompt_ids');
  if (!answerIds.length) reasons.push('no_token_ids');
  else if (!logprobs.length) reasons.push('no_logprobs');
  else if (answerIds.length !== logprobs.length || usageDiffers) reasons.push('count_mismatch');
  if (usage === undefined) reasons.push('no_usage');
  const areSane = logprobs.every(
    (logprob) => Number.isFinite(logprob) && logprob > floorLogprob && logprob <= roundingLogprob,
  );
  if (!areSane) reasons.push('logprob_not_finite');
  if (capture.finishReason === 'abort') reasons.push('aborted');
  if (capture.finishReason === '') reasons.push('incomplete');
  if (choices > 1) reasons.push('several_choices');
  return { trainable: reasons.length === 0, reasons };
}
