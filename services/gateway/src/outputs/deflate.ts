// Compresses what is stored, off the event loop.
import { promisify } from 'node:util';
import { constants, deflateRaw } from 'node:zlib';
import { conversationFact, worthDeflating, type WrittenConversation } from '../domain/conversation.js';
import type { Conversation } from '@backtalk/proto/facts';

const deflate = promisify(deflateRaw);
/** The fastest level: conversations are repetitive enough. */
const options = { level: constants.Z_BEST_SPEED };

export async function encodeConversation(written: WrittenConversation): Promise<Conversation> {
  const messages = Buffer.from(written.messages);
  const tools = Buffer.from(written.tools);
  if (!worthDeflating(written)) return conversationFact(written, { messages, tools, deflated: false });
  const [packed, packedTools] = await Promise.all([
    deflate(messages, options),
    tools.length === 0 ? tools : deflate(tools, options),
  ]);
  return conversationFact(written, { messages: packed, tools: packedTools, deflated: true });
}
