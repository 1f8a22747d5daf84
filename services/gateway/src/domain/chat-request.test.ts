import { describe, expect, it } from 'vitest';
import { readChatRequest } from './chat-request.js';

const messages = [{ role: 'user', content: 'Hello' }];

function refusal(body: unknown): unknown {
  try {
    readChatRequest(body);
    return undefined;
  } catch (error) {
    return error;
  }
}

describe('readChatRequest', () => {
  it('lets unknown fields pass on and types the known ones', () => {
    const body = {
      model: 'backtalk',
      messages,
      stream: true,
      stream_options: { include_usage: true },
      custom: { a: 1 },
    };
    const request = readChatRequest(body);
    expect(request).toMatchObject({
      model: 'backtalk',
      stream: true,
      wantsUsage: true,
      wantsLogprobs: false,
      tools: [],
    });
    expect(request.body).toBe(body);
  });

  it.each([
    [{ messages }, 'missing_required_parameter', 'model'],
    [{ model: 'backtalk' }, 'missing_required_parameter', 'messages'],
    [{ model: 'backtalk', messages: [] }, 'invalid_value', 'messages'],
    [{ model: 'backtalk', messages: 'hi' }, 'invalid_value', 'messages'],
    [{ model: 'backtalk', messages: [{ role: 'robot', content: 'x' }] }, 'invalid_value', 'messages[0].role'],
    [{ model: 'backtalk', messages: [{ role: 'user' }] }, 'missing_required_parameter', 'messages[0].content'],
    [{ model: 'backtalk', messages: [{ role: 'user', content: 5 }] }, 'invalid_value', 'messages[0].content'],
    [{ model: 'backtalk', messages, temperature: 3 }, 'invalid_value', 'temperature'],
    [{ model: 'backtalk', messages, temperature: '1' }, 'invalid_value', 'temperature'],
    [{ model: 'backtalk', messages, max_tokens: 0 }, 'invalid_value', 'max_tokens'],
    [{ model: 'backtalk', messages, max_tokens: 1.5 }, 'invalid_value', 'max_tokens'],
    [{ model: 'backtalk', messages, n: 2 }, 'unsupported_parameter', 'n'],
    [{ model: 'backtalk', messages, stream: 'yes' }, 'invalid_value', 'stream'],
    [{ model: 'backtalk', messages, tools: {} }, 'invalid_value', 'tools'],
    [
      { model: 'backtalk', messages, kv_transfer_params: { remote_host: 'x' } },
      'unsupported_parameter',
      'kv_transfer_params',
    ],
  ])('refuses %j and names the parameter', (body, code, param) => {
    expect(refusal(body)).toMatchObject({ code, detail: { param } });
  });

  it('refuses addresses that an engine would fetch, and takes data that came with the request', () => {
    const withImage = (url: string) => ({
      model: 'backtalk',
      messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }],
    });
    expect(refusal(withImage('http://169.254.169.254/latest'))).toMatchObject({ code: 'unsupported_parameter' });
    expect(refusal(withImage('data:image/png;base64,AA=='))).toBeUndefined();
  });

  it('refuses JSON that is nested too deep to be written again', () => {
    const deep: unknown = JSON.parse('[{"a":'.repeat(5000) + '1' + '}]'.repeat(5000));
    expect(refusal({ model: 'backtalk', messages, deep })).toMatchObject({ code: 'invalid_json' });
  });

  it('takes an assistant message without content, as tool calls have', () => {
    const call = { id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } };
    const body = { model: 'backtalk', messages: [...messages, { role: 'assistant', tool_calls: [call] }] };
    expect(refusal(body)).toBeUndefined();
  });
});
