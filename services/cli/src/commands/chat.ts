// `chat`: a conversation in the terminal, streamed. What is said next is what the model learns from.
import { createInterface } from 'node:readline/promises';
import { isBacktalkError } from '@backtalk/kit';
import type { CommandContext } from '../shell.js';
import { endpointClient, endpointError, type ChatMessage } from '../official-client.js';
import { exitStatusOf } from '../errors.js';
import { giveFeedback } from './feedback.js';

export interface ChatOptions {
  readonly maxTokens: number;
  readonly train: boolean;
  /** Has the model shown the person's lessons that it has not learned yet. */
  readonly remind: boolean;
}

const help = '/good and /bad judge the last answer · /new starts over · /quit ends';

interface Said {
  readonly text: string;
  readonly turn: string;
  readonly version: string;
  /** Lessons that the model was shown. */
  readonly shown: number;
}

function headersOf({ train, remind }: ChatOptions): Record<string, string> {
  return {
    ...(train ? {} : { 'X-Backtalk-Train': 'off' }),
    ...(remind ? { 'X-Backtalk-Lessons': 'on' } : {}),
  };
}

/** @param signal of the person, who may end the talk in the middle of an answer */
async function answer(
  context: CommandContext,
  messages: readonly ChatMessage[],
  options: ChatOptions,
  signal: AbortSignal,
): Promise<Said> {
  const { endpoint, policy } = context.connection;
  const client = endpointClient(endpoint, context.apiKey);
  try {
    const { data, response } = await client.chat.completions
      .create(
        {
          model: policy,
          messages: messages.map((message) => ({ ...message })),
          max_completion_tokens: options.maxTokens,
          stream: true,
        },
        { signal, headers: headersOf(options) },
      )
      .withResponse();
    let text = '';
    for await (const chunk of data) {
      const piece = chunk.choices[0]?.delta.content ?? '';
      text += piece;
      context.output.piece(piece);
    }
    context.output.line('');
    const turn = response.headers.get('x-backtalk-turn') ?? '';
    const version = response.headers.get('x-backtalk-weights') ?? '';
    const shown = Number(response.headers.get('x-backtalk-lessons') ?? 0);
    context.output.value({ turn, version, shown, text });
    return { text, turn, version, shown };
  } catch (error) {
    throw endpointError(error, endpoint);
  }
}

export async function chat(context: CommandContext, options: ChatOptions): Promise<void> {
  const { output } = context;
  output.line(`Talking to ${context.connection.policy}. ${help}`);
  const prompt = createInterface({ input: process.stdin, output: process.stderr, prompt: '> ' });
  const ended = new AbortController();
  let isOpen = true;
  prompt.on('close', () => {
    isOpen = false;
    // Ctrl-C and Ctrl-D end the answer, too; the end of a file has its last line answered.
    if (process.stdin.isTTY) ended.abort();
  });
  context.signal.addEventListener('abort', () => {
    ended.abort();
    prompt.close();
  });
  const talk = new Talk(context, options, ended.signal);
  prompt.prompt();
  for await (const line of prompt) {
    if (line.trim() === '/quit' || ended.signal.aborted) break;
    await talk.take(line.trim());
    if (isOpen) prompt.prompt();
  }
  prompt.close();
}

class Talk {
  private messages: ChatMessage[] = [];
  private last: Said | undefined;

  constructor(
    private readonly context: CommandContext,
    private readonly options: ChatOptions,
    private readonly signal: AbortSignal,
  ) {}

  async take(words: string): Promise<void> {
    const { output } = this.context;
    if (words === '/new') {
      this.messages = [];
      this.last = undefined;
    } else if (words === '/good' || words === '/bad') {
      if (this.last === undefined) output.line('There is no answer to judge yet.');
      else await this.judge(this.last, words === '/good' ? '1' : '-1');
    } else if (/^\/[a-z]+$/.test(words)) output.line(`There is no ${words}. ${help}`);
    else if (words !== '') await this.say(words);
  }

  private async judge({ turn }: Said, score: string): Promise<void> {
    try {
      await giveFeedback(this.context, turn, { score });
    } catch (error) {
      this.complain(error);
    }
  }

  /** What is refused may be said otherwise, or later: the talk goes on. */
  private complain(error: unknown): void {
    const { output } = this.context;
    const mayPass = ['refused', 'answer_broken_off', 'unreachable'].find((code) => isBacktalkError(error, code));
    if (!isBacktalkError(error) || mayPass === undefined) throw error;
    if (error.code === 'answer_broken_off') output.line('');
    output.value({ error: { code: error.code, message: error.message } });
    output.complain(error.message);
    process.exitCode = exitStatusOf(error.code);
  }

  private async say(words: string): Promise<void> {
    const { output } = this.context;
    // An answer that breaks off is none to judge, and no more is the one before it.
    this.last = undefined;
    const messages: ChatMessage[] = [...this.messages, { role: 'user', content: words }];
    try {
      this.last = await answer(this.context, messages, this.options, this.signal);
    } catch (error) {
      if (this.signal.aborted) return output.line('');
      return this.complain(error);
    }
    this.messages = [...messages, { role: 'assistant', content: this.last.text }];
    const { shown, version, turn } = this.last;
    const lessons = shown === 0 ? '' : `, shown ${shown} lesson${shown === 1 ? '' : 's'}`;
    output.line(`  (${version}${lessons}, ${turn})`);
  }
}
