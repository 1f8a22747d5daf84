// Bodies and replies of `/v1/completions`.
import { z } from 'zod';
import type { CompletionChoice, CompletionRequest, RawObject } from '../engine-client.js';
import { engineErrors } from '../errors.js';
import { parseJson } from './chat-wire.js';

const promptEntry = z.record(z.string(), z.object({ logprob: z.number() })).nullable();

const completion = z.object({
  choices: z.array(
    z.object({
      index: z.number(),
      text: z.string(),
      finish_reason: z.string().nullish(),
      token_ids: z.array(z.number()).nullish(),
      prompt_token_ids: z.array(z.number()).nullish(),
      prompt_logprobs: z.array(promptEntry).nullish(),
      logprobs: z
        .object({
          token_logprobs: z.array(z.number().nullable()).nullish(),
          top_logprobs: z.array(z.record(z.string(), z.number()).nullable()).nullish(),
        })
        .nullish(),
    }),
  ),
});

export function completionBody(request: CompletionRequest): RawObject {
  const body: RawObject = { model: request.model, prompt: request.prompt, max_tokens: request.maxTokens };
  body['temperature'] = request.temperature ?? 1;
  if (request.topP !== undefined) body['top_p'] = request.topP;
  if (request.seed !== undefined) body['seed'] = request.seed;
  if (request.stop !== undefined) body['stop'] = request.stop;
  if (request.topLogprobs !== undefined) body['logprobs'] = request.topLogprobs;
  return body;
}

export function completionChoices(text: string): CompletionChoice[] {
  const parsed = completion.safeParse(parseJson(text));
  if (!parsed.success) throw engineErrors.replyInvalid({ what: 'completion' });
  const choices = parsed.data.choices.toSorted((a, b) => a.index - b.index);
  return choices.map((choice) => {
    const promptIds = choice.prompt_token_ids;
    // The logprob of the token that stands there; an entry may hold likelier alternatives beside it.
    const promptLogprobs = choice.prompt_logprobs?.map((entry, at) => {
      const id = promptIds?.[at];
      return id === undefined ? Object.values(entry ?? {})[0]?.logprob : entry?.[String(id)]?.logprob;
    });
    return {
      text: choice.text,
      ids: choice.token_ids ?? [],
      logprobs: (choice.logprobs?.token_logprobs ?? []).map((value) => value ?? Number.NaN),
      topLogprobs: (choice.logprobs?.top_logprobs ?? []).map((alternatives) => alternatives ?? {}),
      finishReason: choice.finish_reason ?? '',
      ...(promptLogprobs ? { promptLogprobs } : {}),
    };
  });
}
