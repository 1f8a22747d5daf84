// The thread that reads large chat bodies: all that looks at the whole of one is done here.
//
// In: a body's bytes, and the rules. Out: the request, its bytes handed over and not copied, or why it is refused. It imports
// only what loads quickly.
import { parentPort } from 'node:worker_threads';
import { asBacktalkError, type ErrorFacts } from '@backtalk/kit/pure';
import { readChat, type ChatRequest, type ReadingRules } from '../domain/chat-request.js';

export interface ToRead {
  readonly bytes: Uint8Array;
  readonly rules: ReadingRules;
}

export type Read = { readonly request: ChatRequest } | { readonly refusal: ErrorFacts };

function read({ bytes, rules }: ToRead): Read {
  try {
    return { request: readChat(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length), rules) };
  } catch (thrown) {
    const { code, retry, message, status, detail } = asBacktalkError(thrown);
    return { refusal: { code, retry, message, status, detail } };
  }
}

/** What small arrays lie in belongs to others, too. */
function ownMemory(read: Read): ArrayBuffer[] {
  if ('refusal' in read) return [];
  const { messages, tools, templateArguments, writtenFields, lacking } = read.request;
  const own = new Set<ArrayBuffer>();
  const written = [messages.json, tools, templateArguments, ...Object.values(writtenFields)];
  for (const { buffer, byteLength } of lacking === undefined ? written : [...written, lacking.body])
    if (byteLength > 0 && byteLength === buffer.byteLength && buffer instanceof ArrayBuffer) own.add(buffer);
  return [...own];
}

parentPort?.on('message', (given: ToRead) => {
  const answer = read(given);
  parentPort?.postMessage(answer, ownMemory(answer));
});
