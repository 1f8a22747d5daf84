// How are a request's messages written into the log?
//
// In: messages, tools, and what is remembered of the provisional parent. Out: the JSON to store: all messages, or only
// those after the parent's where the parent's come first, unchanged. Chains of differences are bounded, so that a
// reader never follows more than `differenceDepthMax` links. Pure.
import { createHash } from 'node:crypto';
import { Conversation_Encoding, type Conversation } from '@backtalk/proto/facts';
import type { ChatRequest } from './chat-request.js';
import type { RememberedConversation, RememberedTurn } from './continuation.js';

export interface WrittenConversation {
  /** JSON array of the messages to store. */
  readonly messages: Buffer;
  /** JSON array of the tools, or empty. */
  readonly tools: Buffer;
  /** JSON object of what the model's template is given besides, or empty. */
  readonly templateArguments: Buffer;
  readonly baseTurn: string;
  readonly sharedMessages: number;
  /** For the answer index, when the next request comes. */
  readonly remembered: RememberedConversation;
}

/** Of a request: what its prompt is rendered from. */
type ConversationParts = Pick<ChatRequest, 'tools' | 'templateArguments'> & { readonly messages: readonly unknown[] };

export const differenceDepthMax = 8;
/** Below this many bytes, compressing costs more than it saves. */
const deflateBytesMin = 4 * 1024;
/** Hashed in 2 ms: other requests are served between two of these. */
const pieceCharacters = 512 * 1024;

/**
 * @param pause lets others go on: a large conversation is written in pieces
 */
export async function writeConversation(
  { messages, tools, templateArguments }: ConversationParts,
  parent: RememberedTurn | undefined,
  pause: () => Promise<unknown>,
): Promise<WrittenConversation> {
  const base = parent?.conversation;
  const mayShare = base !== undefined && base.messages !== 0 && base.depth < differenceDepthMax;
  const digest = createHash('sha256');
  let pieces: Buffer[] = [];
  let shared = 0;
  let waiting = '';
  const flush = async (): Promise<void> => {
    if (waiting.length > pieceCharacters) await pause();
    const bytes = Buffer.from(waiting);
    waiting = '';
    pieces.push(bytes);
    for (let at = 0; at < bytes.length; at += pieceCharacters) {
      if (at > 0) await pause();
      digest.update(bytes.subarray(at, at + pieceCharacters));
    }
  };
  for (const [index, message] of messages.entries()) {
    // Each message ends in a comma, in the digest as in the array.
    waiting += `${JSON.stringify(message)},`;
    const endsShared = mayShare && index + 1 === base.messages;
    if (endsShared || waiting.length > pieceCharacters) await flush();
    // What is shared is not written again.
    if (endsShared && digest.copy().digest('hex') === base.digest) [shared, pieces] = [base.messages, []];
  }
  await flush();
  return {
    messages: arrayOf(pieces),
    tools: Buffer.from(tools.length === 0 ? '' : JSON.stringify(tools)),
    templateArguments: Buffer.from(
      Object.keys(templateArguments).length === 0 ? '' : JSON.stringify(templateArguments),
    ),
    baseTurn: shared === 0 ? '' : (parent?.turn ?? ''),
    sharedMessages: shared,
    remembered: {
      messages: messages.length,
      digest: digest.digest('hex'),
      depth: shared === 0 ? 0 : (base?.depth ?? 0) + 1,
    },
  };
}

/** The brackets of an array around messages that end in a comma each. */
function arrayOf(pieces: readonly Buffer[]): Buffer {
  const array = Buffer.concat([Buffer.from('['), ...pieces, Buffer.from(']')]);
  if (array.length === 2) return array;
  array[array.length - 2] = ']'.charCodeAt(0);
  return array.subarray(0, -1);
}

export function worthDeflating({ messages, tools }: WrittenConversation): boolean {
  return messages.length + tools.length > deflateBytesMin;
}

export function conversationFact(
  written: WrittenConversation,
  bytes: { readonly messages: Uint8Array; readonly tools: Uint8Array; readonly deflated: boolean },
): Conversation {
  return {
    encoding: bytes.deflated ? Conversation_Encoding.ENCODING_JSON_DEFLATE : Conversation_Encoding.ENCODING_JSON,
    messages: bytes.messages,
    tools: bytes.tools,
    baseTurn: written.baseTurn,
    sharedMessages: written.sharedMessages,
    templateArguments: written.templateArguments,
  };
}
