// One chat completion, not streamed, with the ids that the engine gave where it gives them.
import { isJsonObject } from '@backtalk/kit';
import type { ChatMessage } from '@backtalk/cli';
import type OpenAI from 'openai';

export interface AskOptions {
  readonly model: string;
  readonly maxTokens: number;
  readonly temperature?: number;
  /** False: the turn is not learned from. */
  readonly train: boolean;
  /** The model is shown what it is being taught, until it has learned it. */
  readonly lessons?: boolean;
  readonly signal?: AbortSignal | undefined;
}

export interface Answer {
  readonly text: string;
  /** False when the answer was cut by its token limit. */
  readonly ended: boolean;
  readonly version: string;
  readonly promptIds: readonly number[];
  readonly answerIds: readonly number[];
  readonly promptTokens: number;
  /** Lessons that the model was shown. */
  readonly shown: number;
}

export async function ask(client: OpenAI, messages: readonly ChatMessage[], options: AskOptions): Promise<Answer> {
  const body = {
    model: options.model,
    messages: messages.map(({ role, content }) => ({ role, content })),
    max_completion_tokens: options.maxTokens,
    ...(options.temperature === undefined ? {} : { temperature: options.temperature }),
    return_token_ids: true,
  };
  const headers = {
    ...(options.train ? {} : { 'X-Backtalk-Train': 'off' }),
    ...(options.lessons === true ? { 'X-Backtalk-Lessons': 'on' } : {}),
  };
  const { data, response } = await client.chat.completions
    .create(body, { headers, ...(options.signal && { signal: options.signal }) })
    .withResponse();
  const [choice] = data.choices;
  return {
    text: choice?.message.content ?? '',
    ended: choice?.finish_reason === 'stop',
    version: response.headers.get('x-backtalk-weights') ?? '',
    promptIds: idsIn(data, 'prompt_token_ids'),
    answerIds: idsIn(choice, 'token_ids'),
    promptTokens: data.usage?.prompt_tokens ?? 0,
    shown: Number(response.headers.get('x-backtalk-lessons') ?? 0),
  };
}

function idsIn(value: unknown, name: string): number[] {
  const ids = isJsonObject(value) ? value[name] : undefined;
  return Array.isArray(ids) ? ids.filter((id): id is number => typeof id === 'number') : [];
}
