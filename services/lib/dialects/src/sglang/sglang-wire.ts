// Reads what SGLang adds to OpenAI's shapes: ids and logprobs in `meta_info`, beside each choice.
//
// In: parsed answers. Out: captures, scores. A logprob stands in a triple with its token id: [logprob, id, text].
import { isJsonObject } from '@backtalk/kit';
import { z } from 'zod';
import type { Capture } from '../capture/capture.js';
import type { CompletionChoice } from '../engine-client.js';
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

const answered = z.object({
  text: z.string(),
  output_ids: z.array(z.number()),
  meta_info: z.object({
    finish_reason: z.object({ type: z.string() }).nullish(),
    output_token_logprobs: triples,
    output_top_logprobs: z.array(triples).nullish(),
  }),
});

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

/** Ids where other engines have them, so that clients see those that they asked for; what was asked for the log's sake is not theirs. */
export function asOthersSay(raw: WireChat, { promptIds, answerIds }: Capture): WireChat {
  const extras = { prompt_token_ids: undefined, meta_info: undefined };
  const choices = raw.choices?.map((choice) => ({ ...choice, ...extras, token_ids: answerIds }));
  return { ...raw, ...(choices && { choices }), prompt_token_ids: promptIds ?? null, metadata: undefined };
}

/** An answer to a prompt that is no conversation. */
export function generatedChoice(value: unknown): CompletionChoice {
  const parsed = answered.safeParse(value);
  if (!parsed.success) throw engineErrors.replyInvalid({ what: 'completion' });
  const { text, output_ids: ids, meta_info: info } = parsed.data;
  const byText = (entries: z.infer<typeof triples>) =>
    Object.fromEntries(
      (entries ?? []).map(([logprob, id, word]) => [
        typeof word === 'string' ? word : String(id),
        logprob ?? Number.NaN,
      ]),
    );
  return {
    text,
    ids,
    logprobs: (info.output_token_logprobs ?? []).map(([logprob]) => logprob ?? Number.NaN),
    topLogprobs: (info.output_top_logprobs ?? []).map(byText),
    finishReason: info.finish_reason?.type ?? '',
  };
}

/** Logprobs of the last `count` tokens of a prompt that was given as ids. */
export function scoresOf(value: unknown, answerIds: readonly number[]): number[] {
  const parsed = generated.safeParse(value);
  if (!parsed.success) throw engineErrors.replyInvalid({ what: 'prompt logprobs' });
  const given = parsed.data.meta_info.input_token_logprobs ?? [];
  const own = given.slice(given.length - answerIds.length);
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
