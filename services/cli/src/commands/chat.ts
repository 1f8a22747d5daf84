// `chat`: a conversation in the terminal, streamed. What is said next is what the model learns from.
import { createInterface } from 'node:readline/promises';
import type { CommandContext } from '../shell.js';
import { endpointClient, type ChatMessage } from '../endpoint.js';
import { giveFeedback } from './feedback.js';

export interface ChatOptions {
  readonly maxTokens: number;
  readonly train: boolean;
}

const help = '/good and /bad judge the last answer · /new starts over · /quit ends';

interface Said {
  readonly text: string;
  readonly turn: string;
  readonly version: string;
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
      { signal: context.signal, headers: options.train ? {} : { 'X-Backtalk-Train': 'off' } },
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
  context.output.value({ turn, version, text });
  return { text, turn, version };
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
      output.line(`  (${last.version}, ${last.turn})`);
    }
    prompt.prompt();
  }
  prompt.close();
}
