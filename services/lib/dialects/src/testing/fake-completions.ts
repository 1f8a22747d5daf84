// Writes the completions of a fake engine, with the logprobs of given ids.
import type { FakeCompletionRequest } from './fake-request.js';
import type { FakeSettings } from './fake-settings.js';
import { endToken, fakeLogprobs, generate, tokensOf } from './fake-tokens.js';

/** The prompts of a request, as ids; with the text of those that came as text. */
export interface FakePrompt {
  readonly ids: readonly number[];
  readonly text: string | undefined;
}

export function promptsOf({ prompt }: FakeCompletionRequest): FakePrompt[] {
  if (typeof prompt === 'string') return [fromText(prompt)];
  const list: readonly (string | number | readonly number[])[] = prompt;
  if (list.every((item) => typeof item === 'number')) return [{ ids: list, text: undefined }];
  return list.map((item) =>
    typeof item === 'string' ? fromText(item) : { ids: typeof item === 'number' ? [item] : item, text: undefined },
  );
}

export function wholeCompletion(
  request: FakeCompletionRequest,
  prompts: readonly FakePrompt[],
  model: string,
  digest: string,
  settings: FakeSettings,
): unknown {
  const choices = prompts.map((prompt, index) => choiceOf(request, prompt, index, model, digest, settings));
  const promptTokens = prompts.reduce((sum, { ids }) => sum + ids.length, 0);
  const tokens = choices.reduce((sum, { token_ids: ids }) => sum + ids.length, 0);
  return {
    id: 'cmpl-fake',
    object: 'text_completion',
    created: 1,
    model,
    choices,
    usage: { prompt_tokens: promptTokens, total_tokens: promptTokens + tokens, completion_tokens: tokens },
  };
}

function choiceOf(
  request: FakeCompletionRequest,
  prompt: FakePrompt,
  index: number,
  model: string,
  digest: string,
  settings: FakeSettings,
) {
  const most = request.max_tokens ?? 16;
  const said = settings.continues?.(prompt.ids, model);
  const whole =
    said === undefined
      ? generate(digest, prompt.ids, request.seed ?? 0, settings.answerTokens)
      : [...tokensOf(said), endToken];
  const tokens = whole.slice(0, most);
  const ids = tokens.map(({ id }) => id);
  const logprobs = fakeLogprobs(digest, prompt.ids, ids);
  const own = tokens.map(({ text }, at) => ({ [text]: logprobs[at] ?? 0 }));
  const first = prompt.text === undefined ? undefined : settings.alternatives?.(prompt.text, model);
  const top = first === undefined ? own : own.map((entry, at) => (at === 0 ? first : entry));
  return {
    index,
    text: tokens.map(({ text }) => text).join(''),
    logprobs:
      request.logprobs === undefined || request.logprobs === null
        ? null
        : { text_offset: [], token_logprobs: logprobs, tokens: tokens.map(({ text }) => text), top_logprobs: top },
    finish_reason: tokens.length < whole.length ? 'length' : 'stop',
    token_ids: ids,
    prompt_token_ids: prompt.ids,
    prompt_logprobs:
      request.prompt_logprobs === undefined || request.prompt_logprobs === null
        ? null
        : promptLogprobs(prompt.ids, model, digest, settings),
  };
}

function promptLogprobs(ids: readonly number[], model: string, digest: string, settings: FakeSettings) {
  const wrong = settings.faults.lie === 'wrong_scores' ? -0.5 : 0;
  const odds = settings.odds?.(ids, model) ?? 0;
  return fakeLogprobs(digest, [], ids).map((truth, at) => {
    const logprob = truth + wrong + (at === ids.length - 1 ? odds : 0);
    return at === 0 ? null : { [String(ids[at])]: { logprob, rank: 1, decoded_token: '' } };
  });
}

function fromText(text: string): FakePrompt {
  return { ids: tokensOf(text).map(({ id }) => id), text };
}
