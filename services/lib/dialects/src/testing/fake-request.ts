// Reads what a caller asks of a fake engine.
import type { IncomingMessage } from 'node:http';
import { Worker } from 'node:worker_threads';
import { z } from 'zod';
import type { FakeMessage } from './fake-tokens.js';

const content = z.union([
  z.string(),
  z.null(),
  z.array(z.object({ type: z.string().optional(), text: z.string().optional() })),
]);

const sampling = {
  model: z.string().optional(),
  max_tokens: z.number().int().min(1).nullish(),
  max_completion_tokens: z.number().int().min(1).nullish(),
  temperature: z.number().min(0).nullish(),
  seed: z.number().nullish(),
  stream: z.boolean().nullish(),
  return_token_ids: z.boolean().nullish(),
  ignore_eos: z.boolean().nullish(),
};

export const chatRequest = z.object({
  ...sampling,
  messages: z.array(z.object({ role: z.string(), content: content.optional() })).min(1),
  logprobs: z.boolean().nullish(),
  stream_options: z.object({ include_usage: z.boolean().nullish() }).nullish(),
  tools: z.array(z.object({ function: z.object({ name: z.string() }) })).nullish(),
  tool_choice: z.unknown().optional(),
});
export type FakeChatRequest = z.infer<typeof chatRequest>;

const promptIds = z.array(z.number());
export const completionRequest = z.object({
  ...sampling,
  prompt: z.union([z.string(), promptIds, z.array(z.string()), z.array(promptIds)]),
  logprobs: z.number().nullish(),
  prompt_logprobs: z.number().nullish(),
});
export type FakeCompletionRequest = z.infer<typeof completionRequest>;

export const tokenizeRequest = z.object({
  model: z.string().optional(),
  prompt: z.string().optional(),
  messages: chatRequest.shape.messages.optional(),
  add_generation_prompt: z.boolean().optional(),
});

export const loadRequest = z.object({ lora_name: z.string(), lora_path: z.string() });
export const unloadRequest = z.object({ lora_name: z.string() });

export function messagesOf(request: { messages: FakeChatRequest['messages'] }): FakeMessage[] {
  return request.messages.map(({ role, content: words }) => ({ role, content: textOf(words) }));
}

/** Beyond this a body is read beside the event loop. */
const largeBytes = 1024 * 1024;
/** Of tools nothing but their names is looked at here, and what a thread hands over is copied on the event loop. */
const reading = `
const { parentPort } = require('node:worker_threads');
parentPort.once('message', (text) => {
  let body;
  try {
    body = JSON.parse(Buffer.from(text).toString('utf8'));
    if (Array.isArray(body.tools)) body.tools = body.tools.map((tool) => ({ function: { name: tool?.function?.name } }));
  } catch {}
  parentPort.postMessage(body);
});
`;

/** A stand-in for engines with many cores and a process of their own for what comes in: none waits for another's body. */
export async function readJson(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) if (Buffer.isBuffer(chunk)) chunks.push(chunk);
  const text = Buffer.concat(chunks);
  if (text.length > largeBytes) {
    const thread = new Worker(reading, { eval: true, execArgv: [] });
    const read = new Promise<unknown>((resolve) => thread.once('message', resolve));
    thread.postMessage(text);
    return read.finally(() => thread.terminate());
  }
  try {
    return JSON.parse(text.toString('utf8'));
  } catch {
    return undefined;
  }
}

function textOf(words: z.infer<typeof content> | undefined): string {
  if (words === null || words === undefined) return '';
  return typeof words === 'string' ? words : words.map(({ text }) => text ?? '').join('\n');
}
