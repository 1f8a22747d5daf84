import { JsonText } from '@backtalk/dialects';
import { describe, expect, it } from 'vitest';
import { readChat } from './chat-request.js';
import { engineRequest } from './engine-request.js';
import type { ClientApi } from './chat-request.js';

const conversation = [
  { role: 'user', content: 'Rain?' },
  {
    role: 'assistant',
    content: [
      { type: 'thinking', thinking: 'Rome.', signature: 's' },
      { type: 'tool_use', id: 'toolu_1', name: 'rain', input: {} },
    ],
  },
  { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'Gone.', is_error: true }] },
];

function asked(api: ClientApi, dialect: string, messages: unknown, isBounded = true) {
  const body = { model: 'backtalk', max_tokens: 64, messages };
  const request = readChat(Buffer.from(JSON.stringify(body)), { api, messagesMax: 100, temperature: 1 });
  const replica = { url: 'http://127.0.0.1:1', dialect, baseModel: 'tiny', maxContext: 128 };
  const written = { version: 'backtalk-v0', replica, messages: request.messages.json, cacheSalt: 'acme', isBounded };
  const { messages: sent, ...rest } = engineRequest(request, written);
  if (!(sent instanceof JsonText)) throw new TypeError('the messages are not written');
  return { ...rest, messages: JSON.parse(Buffer.from(sent.bytes).toString()) as unknown };
}

describe('engineRequest', () => {
  it('what engines compute once for several requests is of one tenant alone, and a service of others is told of no tenant', () => {
    for (const dialect of ['vllm', 'sglang', 'builtin'])
      expect(asked('chat', dialect, [conversation[0]])).toMatchObject({ cache_salt: 'acme' });
    expect(asked('chat', 'openai', [conversation[0]])).not.toHaveProperty('cache_salt');
  });

  it('an engine of one’s own is sent the messages as the log has them', () => {
    expect(asked('messages', 'vllm', conversation).messages).toMatchObject([
      {},
      { reasoning: 'Rome.', reasoning_content: 'Rome.' },
      { is_error: true },
    ]);
  });

  it('a service of others is sent nothing in messages that the chat API does not have', () => {
    const call = { id: 'toolu_1', type: 'function', function: { name: 'rain', arguments: '{}' } };
    expect(asked('messages', 'openai', conversation).messages).toEqual([
      { role: 'user', content: 'Rain?' },
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: 'toolu_1', content: 'Gone.' },
    ]);
  });

  it('a service of others is sent what clients of the chat API wrote themselves', () => {
    const messages = [{ role: 'assistant', content: 'Dry.', reasoning_content: 'Rome.' }];
    expect(asked('chat', 'openai', messages).messages).toEqual(messages);
  });

  it('a bound on the answer is left out where it is to be loosened', () => {
    expect(asked('messages', 'vllm', conversation)).toMatchObject({ max_completion_tokens: 64 });
    expect(asked('messages', 'vllm', conversation, false)).not.toHaveProperty('max_completion_tokens');
  });
});
