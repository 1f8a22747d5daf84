// Reads a conversation fact back into messages and tools. In: the fact, and a way to read the conversation of another
// turn, for facts that hold a difference. Out: JSON values as the client sent them. It never follows more links than
// writers make, never inflates more than a request may hold, and never parses what would become more objects.
import { promisify } from 'node:util';
import { inflateRaw } from 'node:zlib';
import { Conversation_Encoding, type Conversation } from '@backtalk/proto/facts';
import { defineErrors } from '../errors/backtalk-error.js';
import { isJsonObject, type JsonObject } from '../json/json-object.js';
import { jsonExcess } from '../json/json-scan.js';

export interface DecodedConversation {
  readonly messages: readonly unknown[];
  readonly tools: readonly unknown[];
  /** What the request gave the model's chat template besides; empty where it gave nothing. */
  readonly templateArguments: JsonObject;
}

/** Longest chain of differences that a reader follows; writers stay far below it. */
export const linksMax = 64;
/** Of one part, inflated: what a gateway takes of a whole request by default. Its own bounds leave nothing larger. */
const bounds = { bytesMax: 8 * 1024 * 1024, membersMax: 100_000, depthMax: 200 };

const inflate = promisify(inflateRaw);

async function jsonArray(bytes: Uint8Array, encoding: Conversation_Encoding): Promise<readonly unknown[]> {
  if (bytes.length === 0) return [];
  let excess: string | undefined;
  try {
    const plain =
      encoding === Conversation_Encoding.ENCODING_JSON_DEFLATE
        ? await inflate(bytes, { maxOutputLength: bounds.bytesMax })
        : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    excess = jsonExcess(plain, bounds);
    const value: unknown = excess === undefined ? JSON.parse(plain.toString('utf8')) : undefined;
    if (Array.isArray(value)) {
      const list: readonly unknown[] = value;
      return list;
    }
  } catch (error) {
    throw conversationErrors.unreadable({ what: 'its JSON cannot be read' }, error);
  }
  throw conversationErrors.unreadable({
    what: excess === undefined ? 'it is not a list' : `it has more ${excess} than a request may have`,
  });
}

/** In a turn of before there are none. */
function argumentsIn(bytes: Uint8Array): JsonObject {
  if (bytes.length === 0) return {};
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  let value: unknown;
  try {
    value = jsonExcess(text, bounds) === undefined ? JSON.parse(text.toString('utf8')) : undefined;
  } catch (error) {
    throw conversationErrors.unreadable({ what: 'its template arguments are no JSON' }, error);
  }
  if (!isJsonObject(value)) throw conversationErrors.unreadable({ what: 'its template arguments are no JSON object' });
  return value;
}

/**
 * @param readBase gives the conversation of the turn that a difference starts from; throws when there is none
 */
export async function decodeConversation(
  conversation: Conversation,
  readBase: (turn: string) => Promise<Conversation>,
): Promise<DecodedConversation> {
  const tools = await jsonArray(conversation.tools, conversation.encoding);
  const templateArguments = argumentsIn(conversation.templateArguments);
  const parts: (readonly unknown[])[] = [];
  let current = conversation;
  let wanted = Number.POSITIVE_INFINITY;
  for (let link = 0; link < linksMax; link += 1) {
    const own = await jsonArray(current.messages, current.encoding);
    const { baseTurn, sharedMessages } = current;
    const held = baseTurn === '' ? 0 : sharedMessages;
    parts.unshift(own.slice(0, Math.max(0, wanted - held)));
    if (baseTurn === '') return { messages: parts.flat(), tools, templateArguments };
    wanted = Math.min(wanted, sharedMessages);
    current = await readBase(baseTurn);
  }
  throw conversationErrors.unreadable({ what: `it is a chain of more than ${String(linksMax)} differences` });
}

export const conversationErrors = defineErrors('kit', {
  unreadable: {
    code: 'conversation_unreadable',
    retry: 'never',
    message: ({ what }: { what: string }) => `A stored conversation cannot be decoded: ${what}.`,
  },
});
