// Compresses conversations for the log, beside the event loop.
//
// In: a conversation as it was written, and whose key asked. Out: what the fact holds of it, compressed where that pays. It
// compresses one of each key at a time: who sends many takes one processor with it, and not as many as there are.
import { promisify } from 'node:util';
import { constants, deflateRaw } from 'node:zlib';
import { Mutex } from '@backtalk/kit';
import type { Conversation } from '@backtalk/proto/facts';
import { conversationFact, worthDeflating, type WrittenConversation } from '../domain/conversation.js';

const deflate = promisify(deflateRaw);

export class Packer {
  /** Of keys that have something to compress. */
  private readonly byKey = new Map<string, Mutex>();

  async pack(keyId: string, written: WrittenConversation): Promise<Conversation> {
    const { messages, tools } = written;
    if (!worthDeflating(written)) return conversationFact(written, { messages, tools, deflated: false });
    const own = this.byKey.get(keyId) ?? new Mutex();
    this.byKey.set(keyId, own);
    try {
      return await own.run(async () => {
        const [packed, packedTools] = [await packBytes(messages), await packBytes(tools)];
        return conversationFact(written, { messages: packed, tools: packedTools, deflated: true });
      });
    } finally {
      if (own.size === 0) this.byKey.delete(keyId);
    }
  }
}

async function packBytes(bytes: Uint8Array): Promise<Uint8Array> {
  return bytes.length === 0 ? bytes : deflate(bytes, { level: constants.Z_BEST_SPEED });
}
