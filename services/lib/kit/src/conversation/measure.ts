// How large a stored conversation is before anything of it is parsed. In: the fact, a bound, a way to read the conversation that a
// difference starts from. Out: bytes of JSON, of which no more is ever inflated than the bound; nothing when it is larger.
import { promisify } from 'node:util';
import { inflateRaw } from 'node:zlib';
import { Conversation_Encoding, type Conversation } from '@backtalk/proto/facts';
import { asBacktalkError } from '../errors/backtalk-error.js';
import { conversationErrors, linksMax } from './decode.js';

const inflate = promisify(inflateRaw);

/**
 * Counts whole parts: a difference's base counts with all that it holds.
 * @param readBase gives the conversation of the turn that a difference starts from; throws when there is none
 */
export async function conversationBytes(
  conversation: Conversation,
  bytesMax: number,
  readBase: (turn: string) => Promise<Conversation>,
): Promise<number | undefined> {
  let bytes = (await plainBytes(conversation.tools, conversation.encoding, bytesMax)) ?? Infinity;
  bytes += conversation.templateArguments.byteLength;
  let current = conversation;
  for (let link = 0; link < linksMax; link += 1) {
    bytes += (await plainBytes(current.messages, current.encoding, bytesMax - bytes)) ?? Infinity;
    if (bytes > bytesMax) return undefined;
    if (current.baseTurn === '') return bytes;
    current = await readBase(current.baseTurn);
  }
  return undefined;
}

async function plainBytes(
  part: Uint8Array,
  encoding: Conversation_Encoding,
  bytesMax: number,
): Promise<number | undefined> {
  if (part.byteLength > bytesMax) return undefined;
  if (part.byteLength === 0 || encoding !== Conversation_Encoding.ENCODING_JSON_DEFLATE) return part.byteLength;
  try {
    // One byte more than is wanted, because the least bound that zlib takes is 1.
    return (await inflate(part, { maxOutputLength: Math.max(1, bytesMax) })).byteLength;
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw conversationErrors.unreadable({ what: 'it cannot be inflated' }, asBacktalkError(error));
  }
}
