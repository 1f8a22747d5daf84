// Compresses conversations for the log, beside the event loop.
//
// In: a conversation as it was written, and whose key asked. Out: what the fact holds of it, compressed where that pays. It
// compresses one of each key at a time: who sends many takes one processor with it, and not as many as there are.
import { promisify } from 'node:util';
import { constants, deflateRaw } from 'node:zlib';
import { MutexByKey } from '@backtalk/kit';
import type { Conversation } from '@backtalk/proto/facts';
import { conversationFact, worthDeflating, type WrittenConversation } from '../domain/conversation.js';

const deflate = promisify(deflateRaw);

export class Packer {
  private readonly turns = new MutexByKey();

  async pack(keyId: string, written: WrittenConversation): Promise<Conversation> {
    const { messages, tools } = written;
    if (!worthDeflating(written)) return conversationFact(written, { messages, tools, deflated: false });
    return this.turns.run(keyId, async () => {
      const [packed, packedTools] = [await packBytes(messages), await packBytes(tools)];
      return conversationFact(written, { messages: packed, tools: packedTools, deflated: true });
    });
  }
}

async function packBytes(bytes: Uint8Array): Promise<Uint8Array> {
  return bytes.length === 0 ? bytes : deflate(bytes, { level: constants.Z_BEST_SPEED });
}
