// Reads what SGLang adds to OpenAI's shapes: ids and logprobs in `meta_info`, beside each choice.
//
// In: parsed answers. Out: captures, scores. A logprob stands in a triple with its token id: [logprob, id, text].
import { isJsonObject } from '@backtalk/kit';
import { z } from 'zod';
import type { Capture } from '../capture/capture.js';
import { engineErrors } from '../errors.js';
import { captureOf, type WireChat } from '../openai/chat-wire.js';

const triple = z.tuple([z.number().nullable(), z.number()]).rest(z.unknown());
const triples = z.array(triple).nullish();

const chatExtras = z.object({
  choices: z.array(
    z.object({
      prompt_token_ids: z.array(z.number()).nullish(),
      meta_info: z.object({ output_token_logprobs: triples }).nullish(),
    }),
  ),
});

const generated = z.object({ meta_info: z.object({ input_token_logprobs: triples }) });

/** The capture of a whole chat answer; an adapter is named `<base>:<adapter>` in it. Ids that were asked for and are not there are left out, never guessed. */
export function sglangCaptureOf(raw: WireChat, base: string | undefined): Capture {
  const capture = captureOf(raw);
  const parsed = chatExtras.safeParse(raw);
  const choice = parsed.success ? parsed.data.choices[0] : undefined;
  const tokens = choice?.meta_info?.output_token_logprobs ?? [];
  const adapterPrefix = `${base ?? ''}:`;
  const said = capture.modelAtEnd;
  const model = said.startsWith(adapterPrefix) ? said.slice(adapterPrefix.length) : said;
  return {
    ...capture,
    modelAtStart: model,
    modelAtEnd: model,
    promptIds: choice?.prompt_token_ids ?? capture.promptIds,
    answerIds: tokens.map(([, id]) => id),
    logprobs: tokens.map(([logprob]) => logprob ?? Number.NaN),
  };
}

/** Logprobs of the last `count` tokens of a prompt that was given as ids. */
export function scoresOf(value: unknown, answerIds: readonly number[]): number[] {
  const parsed = generated.safeParse(value);
  if (!parsed.success) throw engineErrors.replyInvalid({ what: 'prompt logprobs' });
  const own = (parsed.data.meta_info.input_token_logprobs ?? []).slice(-answerIds.length);
  // The entry of the token at the start has no logprob, so one token more is asked for than is scored.
  const isWhole =
    own.length === answerIds.length && own.every(([logprob, id], at) => logprob !== null && id === answerIds[at]);
  if (!isWhole) throw engineErrors.replyInvalid({ what: 'prompt logprobs' });
  return own.map(([logprob]) => logprob ?? Number.NaN);
}

/** True where the body of an administrative call says that it failed; such replies may have status 200. */
export function saysFailure(value: unknown): boolean {
  return isJsonObject(value) && value['success'] === false;
}
