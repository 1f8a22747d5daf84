import { describe, expect, it } from 'vitest';
import { readResponses } from './responses-request.js';

const read = (body: Readonly<Record<string, unknown>>, itemsMax = 100) =>
  readResponses({ model: 'backtalk', input: 'Hello', ...body }, itemsMax);
const messagesOf = (input: unknown) => read({ input }).chat['messages'];

const call = { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'rain', arguments: '{"place":"Rome"}' };
const called = { id: 'call_1', type: 'function', function: { name: 'rain', arguments: '{"place":"Rome"}' } };
const said = (text: string) => ({ type: 'message', role: 'assistant', content: [{ type: 'output_text', text }] });
const thought = {
  type: 'reasoning',
  id: 'rs_1',
  summary: [],
  content: [{ type: 'reasoning_text', text: 'Rome, then.' }],
};

const refer = (id: string) => ({ type: 'item_reference', id });

describe('readResponses', () => {
  it.each([
    ['a text is what the person says', 'Hello', [{ role: 'user', content: 'Hello' }]],
    [
      'words in one part are words',
      [{ role: 'user', content: [{ type: 'input_text', text: 'Hello' }] }],
      [{ role: 'user', content: 'Hello' }],
    ],
    [
      'several parts stay parts',
      [
        {
          role: 'user',
          content: [
            { type: 'input_text', text: 'What is this?' },
            { type: 'input_image', image_url: 'data:image/png;base64,AA', detail: 'low' },
          ],
        },
      ],
      [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'What is this?' },
            { type: 'image_url', image_url: { url: 'data:image/png;base64,AA', detail: 'low' } },
          ],
        },
      ],
    ],
    [
      'a thought, words and a call of one answer are one message',
      [{ role: 'user', content: 'Rain?' }, thought, said('I look.'), call],
      [
        { role: 'user', content: 'Rain?' },
        {
          role: 'assistant',
          content: 'I look.',
          reasoning: 'Rome, then.',
          reasoning_content: 'Rome, then.',
          tool_calls: [called],
        },
      ],
    ],
    [
      'calls alone are an answer without words, and what they gave are tools’ messages',
      [call, { ...call, call_id: 'call_2' }, { type: 'function_call_output', call_id: 'call_1', output: 'none' }],
      [
        { role: 'assistant', content: null, tool_calls: [called, { ...called, id: 'call_2' }] },
        { role: 'tool', tool_call_id: 'call_1', content: 'none' },
      ],
    ],
    [
      'words after a call whose result has not come are of the same answer',
      [said('I look.'), call, said(' A moment.')],
      [{ role: 'assistant', content: 'I look. A moment.', tool_calls: [called] }],
    ],
    [
      'what a model is told before all else is one message, and later stands with the person’s as no words of theirs',
      [
        { role: 'developer', content: 'Be kind.' },
        { role: 'user', content: 'Hi' },
        { role: 'developer', content: 'Now.' },
      ],
      [
        { role: 'system', content: 'Be kind.' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'Hi' },
            { type: 'text', text: '<system-reminder>\nNow.\n</system-reminder>' },
          ],
        },
      ],
    ],
    [
      'a second message of the assistant is an answer of its own',
      [said('One.'), said('Two.')],
      [
        { role: 'assistant', content: 'One.' },
        { role: 'assistant', content: 'Two.' },
      ],
    ],
    [
      'a thought without an answer is none',
      [thought, { role: 'user', content: 'Go on.' }],
      [{ role: 'user', content: 'Go on.' }],
    ],
  ])('%s', (_name, input, messages) => {
    expect(messagesOf(input)).toEqual(messages);
  });

  it('says in the chat request’s words what the fields ask for', () => {
    const parameters = { type: 'object' };
    const { chat, repeated } = read({
      instructions: 'Be short.',
      input: [
        { role: 'developer', content: 'And kind.' },
        { role: 'user', content: 'Hello' },
      ],
      tools: [
        { type: 'function', name: 'rain', description: 'Whether it rains.', parameters, strict: true },
        { type: 'web_search', external_web_access: false },
      ],
      reasoning: { effort: 'low', summary: 'auto' },
      client_metadata: { installation: '7' },
      tool_choice: { type: 'function', name: 'rain' },
      text: { format: { type: 'json_schema', name: 'sky', schema: parameters }, verbosity: 'low' },
      max_output_tokens: 40,
      temperature: 0.5,
      metadata: { page: '3' },
      include: ['reasoning.encrypted_content', 'message.output_text.logprobs'],
      stream: true,
      store: true,
      truncation: 'disabled',
      previous_response_id: null,
      background: false,
      session_id: 'mine',
    });
    expect(chat).toEqual({
      model: 'backtalk',
      messages: [
        { role: 'system', content: 'Be short.\n\nAnd kind.' },
        { role: 'user', content: 'Hello' },
      ],
      tools: [{ type: 'function', function: { name: 'rain', description: 'Whether it rains.', parameters } }],
      reasoning: { effort: 'low', summary: 'auto' },
      reasoning_effort: 'low',
      tool_choice: { type: 'function', function: { name: 'rain' } },
      response_format: { type: 'json_schema', json_schema: { name: 'sky', schema: parameters } },
      max_completion_tokens: 40,
      temperature: 0.5,
      metadata: { page: '3' },
      logprobs: true,
      stream: true,
      stream_options: { include_usage: true },
      store: true,
      session_id: 'mine',
    });
    expect(repeated).toEqual({
      temperature: 0.5,
      top_p: null,
      max_output_tokens: 40,
      parallel_tool_calls: true,
      metadata: { page: '3' },
      previous_response_id: null,
    });
  });

  describe('what was said before an answer that is gone on from', () => {
    const earlier = [
      { role: 'system', content: 'Be short.' },
      { role: 'user', content: 'Rain?' },
      { role: 'assistant', content: null, tool_calls: [called] },
    ];
    const output = { type: 'function_call_output', call_id: 'call_1', output: 'No.' };
    const result = { role: 'tool', tool_call_id: 'call_1', content: 'No.' };
    const asked = { model: 'backtalk', input: [output], previous_response_id: 'turn_1' };

    it('earlier messages stand before what is said now, and the answer names what it goes on from', () => {
      const { chat, repeated } = readResponses(asked, 100, { earlier, answers: {}, train: true });
      expect(chat['messages']).toEqual([...earlier, result]);
      expect(chat).not.toHaveProperty('previous_response_id');
      expect(repeated.previous_response_id).toBe('turn_1');
    });

    it('instructions of now take the place of those of before, where there are any', () => {
      const { chat } = readResponses({ ...asked, instructions: 'Be kind.' }, 100, {
        earlier,
        answers: {},
        train: true,
      });
      expect(chat['messages']).toEqual([{ role: 'system', content: 'Be kind.' }, ...earlier.slice(1), result]);
    });

    it('a system message that is said again at the head of the input stands once, and a new one with the person’s words', () => {
      const input = [{ role: 'developer', content: 'Be short.' }, { role: 'system', content: 'It is late.' }, output];
      const { chat } = readResponses({ ...asked, input }, 100, { earlier, answers: {}, train: true });
      const reminded = { role: 'user', content: '<system-reminder>\nIt is late.\n</system-reminder>' };
      expect(chat['messages']).toEqual([...earlier, result, reminded]);
    });

    it('more messages than a request may have are named by what brings them', () => {
      const refusal: unknown = expect.objectContaining({ param: 'previous_response_id' });
      expect(() => readResponses(asked, 3, { earlier, answers: {}, train: true })).toThrow(
        expect.objectContaining({ code: 'invalid_value', detail: refusal }),
      );
    });

    it('words of now join those of before where the answer said nothing', () => {
      const before = { earlier: [{ role: 'user', content: 'Rain?' }], answers: {}, train: true };
      const { chat } = readResponses({ ...asked, input: 'Hello?' }, 100, before);
      const both = [
        { type: 'text', text: 'Rain?' },
        { type: 'text', text: 'Hello?' },
      ];
      expect(chat['messages']).toEqual([{ role: 'user', content: both }]);
    });
  });

  it.each([
    [{ input: undefined }, 'missing_required_parameter', 'input'],
    [{ input: 7 }, 'invalid_value', 'input'],
    [{ input: [] }, 'invalid_value', 'input'],
    [{ input: '' }, 'invalid_value', 'input'],
    [{ input: [{ role: 'user', content: [] }] }, 'invalid_value', 'input'],
    [
      { input: [{ role: 'user', content: [{ type: 'input_text' }] }] },
      'missing_required_parameter',
      'input[0].content[0].text',
    ],
    [{ text: { format: { type: 'grammar' } } }, 'invalid_value', 'text.format.type'],
    [{ metadata: { page: 3 } }, 'invalid_value', 'metadata.page'],
    [{ metadata: { page: 'x'.repeat(513) } }, 'invalid_value', 'metadata'],
    [
      { metadata: Object.fromEntries(Array.from({ length: 17 }, (_, at) => [`k${String(at)}`, 'x'])) },
      'invalid_value',
      'metadata',
    ],
    [{ messages: [{ role: 'user', content: 'Hi' }] }, 'unsupported_parameter', 'messages'],
    [{ input: [{ role: 'tool', content: 'x' }] }, 'invalid_value', 'input[0].role'],
    [{ input: [{ role: 'user', content: 7 }] }, 'invalid_value', 'input[0].content'],
    [{ input: [{ type: 'item_reference' }] }, 'missing_required_parameter', 'input[0].id'],
    [{ input: [refer('msg_a_0'), refer('msg_a_0')] }, 'invalid_value', 'input'],
    [{ input: Array.from({ length: 101 }, (_, at) => refer(`msg_${at}_0`)) }, 'unsupported_parameter', 'input', 200],
    [{ input: [{ ...call, arguments: {} }] }, 'invalid_value', 'input[0].arguments'],
    [
      { input: [{ role: 'user', content: [{ type: 'input_image', image_url: 'https://a/b.png' }] }] },
      'unsupported_parameter',
      'input[0].content[0].image_url',
    ],
    [
      { input: [{ role: 'user', content: [{ type: 'input_file', file_id: 'file_1' }] }] },
      'unsupported_parameter',
      'input[0].content[0].type',
    ],
    [{ tools: [{ type: 'web_search' }] }, 'unsupported_parameter', 'tools[0].type'],
    [{ tool_choice: { type: 'allowed_tools', tools: [] } }, 'unsupported_parameter', 'tool_choice'],
    [{ previous_response_id: 7 }, 'invalid_value', 'previous_response_id'],
    [{ conversation: 'conv_1' }, 'unsupported_parameter', 'conversation'],
    [{ background: true }, 'unsupported_parameter', 'background'],
    [{ truncation: 'auto' }, 'unsupported_parameter', 'truncation'],
    [{ prompt: { id: 'pmpt_1' } }, 'unsupported_parameter', 'prompt'],
    [{ input: Array.from({ length: 100 }, () => call) }, 'invalid_value', 'input'],
  ])('refuses by its name what is not had here, or not understood (%#)', (body, code, param, itemsMax?: number) => {
    const refusal: unknown = expect.objectContaining({ param });
    expect(() => read(body, itemsMax)).toThrow(expect.objectContaining({ code, detail: refusal }));
  });
});
