// How are a request's messages written into the log?
//
// In: messages and tools as JSON, and what is remembered of the provisional parent. Out: the JSON to store: all messages, or only
// those after the parent's where the parent's come first, unchanged. Chains of differences are bounded, so that a
// reader never follows more than `differenceDepthMax` links. Pure.
import { Conversation_Encoding, type Conversation } from '@backtalk/proto/facts';
import type { ChatRequest } from './chat-request.js';
import type { RememberedConversation, RememberedTurn } from './continuation.js';
import { digestOfFirst, messagesAfter } from './written-messages.js';

export interface WrittenConversation {
  /** JSON array of the messages to store. */
  readonly messages: Uint8Array;
  /** JSON array of the tools, or empty. */
  readonly tools: Uint8Array;
  /** JSON object of what the model's template is given besides, or empty. */
  readonly templateArguments: Uint8Array;
  readonly baseTurn: string;
  readonly sharedMessages: number;
  /** Of the messages that the provisional parent's request did not have, as JSON: what may be its next state. */
  readonly newBytes: number;
  /** For the answer index, when the next request comes. */
  readonly remembered: RememberedConversation;
}

/** Of a request: what its prompt is rendered from. */
type ConversationParts = Pick<ChatRequest, 'messages' | 'tools' | 'templateArguments'>;

export const differenceDepthMax = 8;
/** Below this many bytes, compressing costs more than it saves. */
const deflateBytesMin = 4 * 1024;

/**
 * @param pause lets others go on: a large conversation is looked through in pieces
 */
export async function writeConversation(
  { messages, tools, templateArguments }: ConversationParts,
  parent: RememberedTurn | undefined,
  pause: () => Promise<unknown>,
): Promise<WrittenConversation> {
  const base = parent?.conversation;
  const count = messages.ends.length;
  const mayGoOn = base !== undefined && base.messages > 0 && base.messages <= count;
  const goesOn = mayGoOn && (await digestOfFirst(messages, base.messages, pause)) === base.digest;
  // What is shared is not written again.
  const shares = goesOn && base.depth < differenceDepthMax;
  const shared = shares ? base.messages : 0;
  return {
    messages: messagesAfter(messages, shared),
    tools,
    templateArguments,
    baseTurn: shares ? (parent?.turn ?? '') : '',
    sharedMessages: shared,
    newBytes: messages.json.length - (goesOn ? (messages.ends[base.messages - 1] ?? 0) : 0),
    remembered: { messages: count, digest: messages.digest, depth: shares ? base.depth + 1 : 0 },
  };
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
