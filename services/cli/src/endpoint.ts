// The gateway as any client sees it: chat completions by the official client, with the headers that name turn and version.
import OpenAI from 'openai';

export interface ChatMessage {
  readonly role: 'system' | 'user' | 'assistant';
  readonly content: string;
}

export interface AskOptions {
  readonly model: string;
  readonly maxTokens: number;
  readonly temperature?: number;
  /** False: the turn is not learned from. */
  readonly train: boolean;
  readonly signal?: AbortSignal;
}

export interface Answer {
  readonly text: string;
  /** False when the answer was cut by its token limit. */
  readonly ended: boolean;
  readonly version: string;
  readonly turn: string;
  readonly promptIds: readonly number[];
  readonly answerIds: readonly number[];
}

const askWithinMs = 180_000;

export function endpointClient(baseURL: string, apiKey: string): OpenAI {
  return new OpenAI({ baseURL, apiKey, timeout: askWithinMs, maxRetries: 4 });
}

function idsOf(value: unknown): number[] {
  return Array.isArray(value) ? value.filter((id): id is number => typeof id === 'number') : [];
}

function field(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
}

/** One chat completion, not streamed, with the ids that the engine gave where it gives them. */
export async function ask(client: OpenAI, messages: readonly ChatMessage[], options: AskOptions): Promise<Answer> {
  const body = {
    model: options.model,
    messages: messages.map(({ role, content }) => ({ role, content })),
    max_completion_tokens: options.maxTokens,
    ...(options.temperature === undefined ? {} : { temperature: options.temperature }),
    return_token_ids: true,
  };
  const headers = options.train ? {} : { 'X-Backtalk-Train': 'off' };
  const { data, response } = await client.chat.completions
    .create(body, { headers, ...(options.signal === undefined ? {} : { signal: options.signal }) })
    .withResponse();
  const [choice] = data.choices;
  return {
    text: choice?.message.content ?? '',
    ended: choice?.finish_reason === 'stop',
    version: response.headers.get('x-backtalk-weights') ?? '',
    turn: response.headers.get('x-backtalk-turn') ?? data.id,
    promptIds: idsOf(field(data, 'prompt_token_ids')),
    answerIds: idsOf(field(choice, 'token_ids')),
  };
}
