import { describe, expect, it } from 'vitest';
import { readChat, readChatRequest } from './chat-request.js';

const messages = [{ role: 'user', content: 'Hello' }];
const rules = { messagesMax: 2_000, temperature: 0.8 };

function refusal(body: unknown): unknown {
  try {
    readChatRequest(body, rules);
    return undefined;
  } catch (error) {
    return error;
  }
}

describe('readChatRequest', () => {
  it('types the known fields, and keeps those that are set and may concern an engine', () => {
    const body = {
      model: 'backtalk',
      messages,
      stream: true,
      stream_options: { include_usage: true },
      store: false,
      session_id: 'mine',
      top_k: null,
      anything: null,
    };
    const request = readChatRequest(body, rules);
    expect(request).toMatchObject({
      model: 'backtalk',
      stream: true,
      wantsUsage: true,
      wantsLogprobs: false,
      session: { session: 'mine', turnType: '', done: false },
      fields: { model: 'backtalk', stream: true, stream_options: { include_usage: true }, store: false },
      writtenFields: {},
    });
    expect(Object.keys(request.fields)).toEqual(['model', 'stream', 'stream_options', 'store']);
    expect(request.tools).toHaveLength(0);
  });

  it('instructions of the developer are the system’s, which templates know', () => {
    const request = readChatRequest(
      { model: 'm', messages: [{ role: 'developer', content: 'Be brief.' }, ...messages] },
      rules,
    );
    expect(JSON.parse(Buffer.from(request.messages.json).toString())).toEqual([
      { role: 'system', content: 'Be brief.' },
      ...messages,
    ]);
  });

  it('a client’s own words for the template go before other services’ switches', () => {
    const body = { model: 'm', messages, enable_thinking: false };
    const own = { ...body, chat_template_kwargs: { budget: 5 } };
    const templateOf = (given: unknown) => Buffer.from(readChatRequest(given, rules).templateArguments).toString();
    expect([body, own].map(templateOf)).toEqual(['{"enable_thinking":false}', '{"budget":5}']);
    // Each service writes them otherwise.
    const unclear = [
      { thinking: true },
      { thinking: { budget_tokens: 1_024 } },
      { reasoning: 'low' },
      { enable_thinking: 'no' },
    ];
    for (const one of unclear) expect(templateOf({ model: 'm', messages, ...one })).toBe('');
  });

  it('the person is named by either field, and what a function gave may be nothing', () => {
    const nothing = { role: 'function', name: 'f', content: null };
    const body = { model: 'm', messages: [...messages, nothing], safety_identifier: 'ann' };
    expect(readChatRequest(body, rules).user).toBe('ann');
    expect(readChatRequest({ ...body, user: 'ben' }, rules).user).toBe('ben');
  });

  it('writes what is large, and what the log has too, and hands on only what is small as it came', () => {
    const tools = [{ type: 'function', function: { name: 'é' } }];
    const stop = ['a'.repeat(300)];
    const tool_choice = 'b'.repeat(300);
    const body = { model: 'backtalk', messages, tools, stop, tool_choice, chat_template_kwargs: { a: 1 }, seed: 4 };
    const { fields, writtenFields, tools: logged, templateArguments, messages: said } = readChatRequest(body, rules);
    expect(fields).toEqual({ model: 'backtalk', seed: 4 });
    const texts = Object.entries(writtenFields).map(([name, json]) => [name, Buffer.from(json).toString()]);
    expect(Object.fromEntries(texts)).toEqual({
      tools: JSON.stringify(tools),
      stop: JSON.stringify(stop),
      tool_choice: JSON.stringify(tool_choice),
      chat_template_kwargs: '{"a":1}',
    });
    expect([logged, templateArguments]).toEqual([writtenFields['tools'], writtenFields['chat_template_kwargs']]);
    expect(Buffer.from(said.json).toString()).toBe(JSON.stringify(messages));
  });

  it.each([
    [{ custom: { a: 1 } }, 'custom'],
    [{ rid: 'another caller’s' }, 'rid'],
    [{ custom_logit_processor: '{}' }, 'custom_logit_processor'],
    [{ chat_template: '{{ 6 * 7 }}' }, 'chat_template'],
    [{ documents: [{ text: 'x' }] }, 'documents'],
    [{ mm_processor_kwargs: {} }, 'mm_processor_kwargs'],
    [{ guided_regex: '(a+)+$' }, 'guided_regex'],
    [{ structured_outputs: { regex: '(a+)+$' } }, 'structured_outputs.regex'],
    [{ stream_options: { include_usage: true, else: 1 } }, 'stream_options.else'],
    [{ ['x'.repeat(500)]: 1 }, 'x'.repeat(64)],
    [{ chat_template_kwargs: { chat_template: 'x' } }, 'chat_template_kwargs.chat_template'],
    [{ chat_template_kwargs: { tokenize: false } }, 'chat_template_kwargs.tokenize'],
    [{ chat_template_kwargs: { add_generation_prompt: false } }, 'chat_template_kwargs.add_generation_prompt'],
    [{ chat_template_kwargs: { tools: 'x' } }, 'chat_template_kwargs.tools'],
    [{ chat_template_kwargs: { mine: ['a list'] } }, 'chat_template_kwargs.mine'],
    [{ chat_template_kwargs: { mine: 'x'.repeat(257) } }, 'chat_template_kwargs.mine'],
  ])('takes no field that is not on the list: %j', (fields, param) => {
    expect(refusal({ model: 'backtalk', messages, ...fields })).toMatchObject({
      code: 'unsupported_parameter',
      detail: { param },
    });
  });

  it.each([
    { chat_template_kwargs: { enable_thinking: false, reasoning_effort: 'low', budget: 5, none: null } },
    { structured_outputs: { json: { type: 'object' } } },
    { response_format: { type: 'json_schema', json_schema: { name: 'a', schema: {} } } },
    { stop: '\n' },
    { stop: ['a', 'b'] },
  ])('takes %j', (fields) => {
    expect(refusal({ model: 'backtalk', messages, ...fields })).toBeUndefined();
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
    [{ model: 'backtalk', messages, stop: Array.from({ length: 65 }, () => 'a') }, 'invalid_value', 'stop'],
    [{ model: 'backtalk', messages, stop: '' }, 'invalid_value', 'stop'],
    [{ model: 'backtalk', messages, stop: ['a', ''] }, 'invalid_value', 'stop'],
    [
      { model: 'backtalk', messages, response_format: { type: 'structural_tag' } },
      'invalid_value',
      'response_format.type',
    ],
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
    const own = withImage('data:image/png;base64,AA==');
    expect(refusal(own)).toBeUndefined();
    expect([own, { model: 'backtalk', messages }].map((body) => readChatRequest(body, rules).hasMedia)).toEqual([
      true,
      false,
    ]);
  });

  it('engines are not told that calls are to be strict, which some would have a grammar write; the rest of a tool is as it came', () => {
    const rain = { name: 'rain', parameters: { type: 'object' } };
    const tools = [
      { type: 'function', function: { ...rain, strict: true } },
      { type: 'function', function: rain },
    ];
    const { tools: written, fields, sampling } = readChatRequest({ model: 'backtalk', messages, tools }, rules);
    const plain = { type: 'function', function: rain };
    expect(JSON.parse(Buffer.from(written).toString())).toEqual([plain, plain]);
    expect(fields).not.toHaveProperty('tools');
    expect(sampling.parameters.plain).toBe(true);
  });

  it.each([
    [{ type: 'image_embeds', image_embeds: 'AA==' }, 'type'],
    [{ image_embeds: 'AA==' }, 'type'],
    [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' }, uuid: 'another’s' }, 'uuid'],
    [{ type: 'input_image', image_url: 'file:///etc/passwd' }, 'image_url'],
    [{ type: 'video_url', video_url: { url: '/etc/passwd' } }, 'video_url'],
    [{ type: 'input_text', text: 'hi', image_url: 'http://169.254.169.254/' }, 'image_url'],
    [{ type: 'text', audio_url: { url: 'http://169.254.169.254/' } }, 'audio_url'],
    [{ type: 'text', text: 'hi', image_embeds: 'AA==' }, 'image_embeds'],
    [{ type: 'refusal', refusal: 'no', uuid: 'another’s' }, 'uuid'],
    [{ type: 'thinking', thinking: 'hm', image_pil: 'AA==' }, 'image_pil'],
  ])('refuses a part that is no text and no data of its own: %j', (part, key) => {
    expect(refusal({ model: 'backtalk', messages: [{ role: 'user', content: [part] }] })).toMatchObject({
      code: 'unsupported_parameter',
      detail: { param: `messages[0].content[0].${key}` },
    });
  });

  it.each([
    { type: 'text', text: 'Hello', cache_control: { type: 'ephemeral' }, index: 0 },
    { type: 'output_text', text: 'Hello', annotations: [], logprobs: [] },
    { type: 'thinking', thinking: 'Hm.', signature: 's' },
    { type: 'input_audio', input_audio: { data: 'AA==', format: 'wav' } },
  ])('takes a part of a known kind: %j', (part) => {
    expect(refusal({ model: 'backtalk', messages: [{ role: 'user', content: [part] }] })).toBeUndefined();
  });

  it.each(['chat', 'responses', 'messages'] as const)(
    'refuses JSON that is nested too deep to be written again, before anything of it is read: %s',
    (api) => {
      const deep = `${'[{"a":'.repeat(5_000)}1${'}]'.repeat(5_000)}`;
      const block = `{"type":"tool_use","id":"c","name":"f","input":{"a":${deep}}}`;
      const body = Buffer.from(`{"model":"backtalk","messages":[{"role":"assistant","content":[${block}]}]}`);
      expect(() => readChat(body, { ...rules, api })).toThrow(expect.objectContaining({ code: 'invalid_json' }));
    },
  );

  it('takes an assistant message without content, as tool calls have', () => {
    const call = { id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } };
    const body = { model: 'backtalk', messages: [...messages, { role: 'assistant', tool_calls: [call] }] };
    expect(refusal(body)).toBeUndefined();
  });
});
