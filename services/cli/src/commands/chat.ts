// `chat`: a conversation in the terminal, streamed. What is said next is what the model learns from.
import { createInterface } from 'node:readline/promises';
import type { CommandContext } from '../shell.js';
import { endpointClient, type ChatMessage } from '../endpoint.js';
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

async function answer(context: CommandContext, messages: readonly ChatMessage[], options: ChatOptions): Promise<Said> {
  const client = endpointClient(context.connection.endpoint, context.apiKey);
  const { data, response } = await client.chat.completions
    .create(
      {
        model: context.connection.policy,
        messages: messages.map((message) => ({ ...message })),
        max_completion_tokens: options.maxTokens,
        stream: true,
      },
      { signal: context.signal, headers: headersOf(options) },
    )
    .withResponse();
  let text = '';
  for await (const chunk of data) {
    const piece = chunk.choices[0]?.delta.content ?? '';
    text += piece;
    if (!context.output.json) process.stdout.write(piece);
  }
  context.output.line('');
  const turn = response.headers.get('x-backtalk-turn') ?? '';
  const version = response.headers.get('x-backtalk-weights') ?? '';
  const shown = Number(response.headers.get('x-backtalk-lessons') ?? 0);
  context.output.value({ turn, version, shown, text });
  return { text, turn, version, shown };
}

export async function chat(context: CommandContext, options: ChatOptions): Promise<void> {
  const { output } = context;
  output.line(`Talking to ${context.connection.policy}. ${help}`);
  const prompt = createInterface({ input: process.stdin, output: process.stderr, prompt: '> ' });
  context.signal.addEventListener('abort', () => {
    prompt.close();
  });
  let messages: ChatMessage[] = [];
  let last: Said | undefined;
  prompt.prompt();
  for await (const line of prompt) {
    const words = line.trim();
    if (words === '/quit') break;
    if (words === '/new') messages = [];
    else if (words === '/good' || words === '/bad') {
      if (last === undefined) output.line('There is no answer to judge yet.');
      else await giveFeedback(context, last.turn, { score: words === '/good' ? '1' : '-1' });
    } else if (words !== '') {
      messages.push({ role: 'user', content: words });
      last = await answer(context, messages, options);
      messages.push({ role: 'assistant', content: last.text });
      const shown = last.shown === 0 ? '' : `, shown ${last.shown} lesson${last.shown === 1 ? '' : 's'}`;
      output.line(`  (${last.version}${shown}, ${last.turn})`);
    }
    prompt.prompt();
  }
  prompt.close();
}
