// How are a request's messages written into the log?
//
// In: messages, tools, and what is remembered of the provisional parent. Out: the JSON to store: all messages, or only
// those after the parent's where the parent's come first, unchanged. Chains of differences are bounded, so that a
// reader never follows more than `differenceDepthMax` links. Pure.
import { hash } from 'node:crypto';
import { Conversation_Encoding, type Conversation } from '@backtalk/proto/facts';
import type { RememberedConversation, RememberedTurn } from './continuation.js';

export interface WrittenConversation {
  /** JSON array of the messages to store. */
  readonly messages: string;
  /** JSON array of the tools, or empty. */
  readonly tools: string;
  readonly baseTurn: string;
  readonly sharedMessages: number;
  /** For the answer index, when the next request comes. */
  readonly remembered: RememberedConversation;
}

export const differenceDepthMax = 8;
/** Below this many bytes, compressing costs more than it saves. */
const deflateBytesMin = 4 * 1024;

export function writeConversation(
  messages: readonly unknown[],
  tools: readonly unknown[],
  parent: RememberedTurn | undefined,
): WrittenConversation {
  const written = messages.map((message) => JSON.stringify(message));
  const base = parent?.conversation;
  const mayShare =
    base !== undefined &&
    base.messages !== 0 &&
    base.messages <= written.length &&
    base.depth < differenceDepthMax &&
    digestOf(written.slice(0, base.messages)) === base.digest;
  const shared = mayShare ? base.messages : 0;
  return {
    messages: `[${written.slice(shared).join(',')}]`,
    tools: tools.length === 0 ? '' : JSON.stringify(tools),
    baseTurn: shared === 0 ? '' : (parent?.turn ?? ''),
    sharedMessages: shared,
    remembered: {
      messages: messages.length,
      digest: digestOf(written),
      depth: shared === 0 ? 0 : (base?.depth ?? 0) + 1,
    },
  };
}

function digestOf(written: readonly string[]): string {
  return hash('sha256', written.join('\n') + '\n', 'hex');
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
  };
}
