import { deflateRawSync } from 'node:zlib';
import { Conversation, Conversation_Encoding } from '@backtalk/proto/facts';
import { describe, expect, it, vi } from 'vitest';
import { decodeConversation } from './decode.js';

function stored(
  messages: readonly unknown[],
  base: { turn: string; shared: number } = { turn: '', shared: 0 },
): Conversation {
  return Conversation.fromPartial({
    encoding: Conversation_Encoding.ENCODING_JSON_DEFLATE,
    messages: deflateRawSync(JSON.stringify(messages)),
    baseTurn: base.turn,
    sharedMessages: base.shared,
  });
}

const log = new Map([
  ['first', stored(['a', 'b'])],
  ['second', stored(['c', 'd', 'e'], { turn: 'first', shared: 2 })],
  ['loop', stored(['x'], { turn: 'loop', shared: 1 })],
]);

const readBase = (turn: string) => {
  const found = log.get(turn);
  return found === undefined ? Promise.reject(new RangeError(turn)) : Promise.resolve(found);
};

describe('decodeConversation', () => {
  it('gives plain JSON back, with tools', async () => {
    const plain = Conversation.fromPartial({
      encoding: Conversation_Encoding.ENCODING_JSON,
      messages: Buffer.from('[{"role":"user"}]'),
      tools: Buffer.from('[{"type":"function"}]'),
      templateArguments: Buffer.from('{"enable_thinking":false}'),
    });
    expect(await decodeConversation(plain, readBase)).toEqual({
      messages: [{ role: 'user' }],
      tools: [{ type: 'function' }],
      templateArguments: { enable_thinking: false },
    });
    expect((await decodeConversation(stored(['a']), readBase)).templateArguments).toEqual({});
  });

  it('puts a chain of differences together, each base only as far as it is shared', async () => {
    const third = stored(['f'], { turn: 'second', shared: 4 });
    expect((await decodeConversation(third, readBase)).messages).toEqual(['a', 'b', 'c', 'd', 'f']);
    const other = stored(['z'], { turn: 'second', shared: 1 });
    expect((await decodeConversation(other, readBase)).messages).toEqual(['a', 'z']);
  });

  it('refuses what is more than a request may hold, before it is parsed', async () => {
    const parse = vi.spyOn(JSON, 'parse');
    const text = `["${'x'.repeat(9 * 1024 * 1024)}"]`;
    const nested = `${'['.repeat(300)}${']'.repeat(300)}`;
    for (const json of [`[${'{},'.repeat(60_000)}{}]`, nested, text]) {
      const dense = Conversation.fromPartial({
        encoding: Conversation_Encoding.ENCODING_JSON_DEFLATE,
        messages: deflateRawSync('[]'),
        tools: deflateRawSync(json),
      });
      await expect(decodeConversation(dense, readBase)).rejects.toMatchObject({ code: 'conversation_unreadable' });
    }
    expect(parse).not.toHaveBeenCalled();
  });

  it('refuses bytes that are no JSON list, and a chain without an end', async () => {
    const broken = Conversation.fromPartial({
      encoding: Conversation_Encoding.ENCODING_JSON,
      messages: Buffer.from('{'),
    });
    await expect(decodeConversation(broken, readBase)).rejects.toMatchObject({ code: 'conversation_unreadable' });
    for (const templateArguments of [Buffer.from('{'), Buffer.from('["a"]')]) {
      const spoilt = Conversation.fromPartial({ messages: Buffer.from('[]'), templateArguments });
      await expect(decodeConversation(spoilt, readBase)).rejects.toMatchObject({ code: 'conversation_unreadable' });
    }
    const endless = Conversation.fromPartial({
      encoding: Conversation_Encoding.ENCODING_JSON,
      messages: Buffer.from('[]'),
      baseTurn: 'loop',
      sharedMessages: 1,
    });
    await expect(decodeConversation(endless, readBase)).rejects.toMatchObject({ code: 'conversation_unreadable' });
  });
});
