import { describe, expect, it } from 'vitest';
import { readChatRequest } from './chat-request.js';
import { readMessages } from './messages-request.js';

const read = (body: Readonly<Record<string, unknown>>, messagesMax = 100) =>
  readMessages(
    { model: 'backtalk', max_tokens: 64, messages: [{ role: 'user', content: 'Hello' }], ...body },
    messagesMax,
  );
const messagesOf = (messages: unknown) => read({ messages })['messages'];

const text = (words: string) => ({ type: 'text', text: words });
const asks = (...content: unknown[]) => ({ role: 'user', content });
const answers = (...content: unknown[]) => ({ role: 'assistant', content });
const call = { type: 'tool_use', id: 'toolu_1', name: 'rain', input: { place: 'Rome' } };
const called = { id: 'toolu_1', type: 'function', function: { name: 'rain', arguments: '{"place":"Rome"}' } };
const result = (content: unknown, more: object = {}) => ({
  type: 'tool_result',
  tool_use_id: 'toolu_1',
  content,
  ...more,
});
const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AA' } };

describe('readMessages', () => {
  it.each([
    ['a text is what the person says', [{ role: 'user', content: 'Hello' }], [{ role: 'user', content: 'Hello' }]],
    ['words in one block are words', [asks(text('Hello'))], [{ role: 'user', content: 'Hello' }]],
    [
      'several blocks stay parts, and pictures bring their data',
      [asks(text('What is this?'), image)],
      [
        {
          role: 'user',
          content: [text('What is this?'), { type: 'image_url', image_url: { url: 'data:image/png;base64,AA' } }],
        },
      ],
    ],
    [
      'a thought, words and a call are one answer',
      [
        asks(text('Rain?')),
        answers({ type: 'thinking', thinking: 'Rome.', signature: 's' }, text('I look.'), call),
        asks(result('none')),
      ],
      [
        { role: 'user', content: 'Rain?' },
        {
          role: 'assistant',
          content: 'I look.',
          reasoning: 'Rome.',
          reasoning_content: 'Rome.',
          tool_calls: [called],
        },
        { role: 'tool', tool_call_id: 'toolu_1', content: 'none' },
      ],
    ],
    [
      'what a tool gave is the tool’s message, before what the person says with it',
      [answers(call), asks(result('none'), text('Hurry.'))],
      [
        { role: 'assistant', content: null, tool_calls: [called] },
        { role: 'tool', tool_call_id: 'toolu_1', content: 'none' },
        { role: 'user', content: 'Hurry.' },
      ],
    ],
    [
      'a result that says nothing is an empty one, and one of an error says so',
      [answers(call), asks(result(undefined), result([text('No such file.')], { is_error: true }))],
      [
        { role: 'assistant', content: null, tool_calls: [called] },
        { role: 'tool', tool_call_id: 'toolu_1', content: '' },
        { role: 'tool', tool_call_id: 'toolu_1', content: 'No such file.', is_error: true },
      ],
    ],
    [
      'messages of a person that follow each other are one',
      [asks(text('One.')), { role: 'user', content: 'Two.' }],
      [{ role: 'user', content: [text('One.'), text('Two.')] }],
    ],
    [
      'what a client says to the model in the midst stands with the message before it, as no person’s words',
      [asks(text('Hello')), { role: 'system', content: [text('The folder is /home.')] }],
      [
        {
          role: 'user',
          content: [text('Hello'), text('<system-reminder>\nThe folder is /home.\n</system-reminder>')],
        },
      ],
    ],
    [
      'an answer that was cut off in its thoughts is nothing that was said',
      [asks(text('Hello')), answers({ type: 'thinking', thinking: 'Hm', signature: '' }), asks(text('So?'))],
      [{ role: 'user', content: [text('Hello'), text('So?')] }],
    ],
    [
      'what Anthropic’s service did itself in an answer is left out',
      [
        asks(text('News?')),
        answers(
          text('None.'),
          { type: 'server_tool_use', id: 's', name: 'web_search', input: {} },
          { type: 'web_search_tool_result', tool_use_id: 's', content: [] },
          { type: 'redacted_thinking', data: 'x' },
          { type: 'container_upload', file_id: 'f' },
        ),
        asks(text('And now?')),
      ],
      [
        { role: 'user', content: 'News?' },
        { role: 'assistant', content: 'None.' },
        { role: 'user', content: 'And now?' },
      ],
    ],
    [
      'answers that follow each other are one',
      [asks(text('Rain?')), answers(text('I look.')), answers(call), asks(result('none'))],
      [
        { role: 'user', content: 'Rain?' },
        { role: 'assistant', content: 'I look.', tool_calls: [called] },
        { role: 'tool', tool_call_id: 'toolu_1', content: 'none' },
      ],
    ],
    [
      'what a client says between a call and its result stands after the result, without marks of its own',
      [
        asks(text('Rain?')),
        answers(call),
        {
          role: 'system',
          content: '<system-reminder>a</system-reminder>\nUse tabs.\n<system-reminder>b</system-reminder>',
        },
        asks(result('none')),
      ],
      [
        { role: 'user', content: 'Rain?' },
        { role: 'assistant', content: null, tool_calls: [called] },
        { role: 'tool', tool_call_id: 'toolu_1', content: 'none' },
        { role: 'user', content: '<system-reminder>\na\nUse tabs.\nb\n</system-reminder>' },
      ],
    ],
    [
      'what a client says before all else is what the model is told to be',
      [{ role: 'system', content: 'Be brief.' }, asks(text('Hello'))],
      [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'Hello' },
      ],
    ],
    [
      'arguments that are no object come back as the model wrote them',
      [
        asks(text('Rain?')),
        answers({ ...call, input: { INVALID_JSON: 'rain in Rome' } }, { ...call, id: 'toolu_2', input: [1] }),
        asks(result('No.')),
      ],
      [
        { role: 'user', content: 'Rain?' },
        {
          role: 'assistant',
          content: null,
          tool_calls: [
            { ...called, function: { name: 'rain', arguments: 'rain in Rome' } },
            { id: 'toolu_2', type: 'function', function: { name: 'rain', arguments: '[1]' } },
          ],
        },
        { role: 'tool', tool_call_id: 'toolu_1', content: 'No.' },
      ],
    ],
    [
      'a conversation that was made shorter goes on from its summary',
      [answers({ type: 'compaction', content: 'They spoke of Rome.' }), asks(text('And Oban?'))],
      [
        { role: 'assistant', content: 'They spoke of Rome.' },
        { role: 'user', content: 'And Oban?' },
      ],
    ],
    [
      'documents bring their words or their data',
      [
        asks(
          { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'Once.' } },
          { type: 'document', title: 'a.pdf', source: { type: 'base64', media_type: 'application/pdf', data: 'AA' } },
          { type: 'search_result', title: 'T', source: 'https://a.example', content: [text('Found.')] },
        ),
      ],
      [
        {
          role: 'user',
          content: [
            text('Once.'),
            { type: 'file', file: { file_data: 'data:application/pdf;base64,AA', filename: 'a.pdf' } },
            text('T\nhttps://a.example\nFound.'),
          ],
        },
      ],
    ],
  ])('%s', (_, given, messages) => {
    expect(messagesOf(given)).toEqual(messages);
  });

  it.each([
    [[text('x-anthropic-billing-header: cc_version=1;'), text('You are brief.'), text('You are kind.')]],
    ['x-anthropic-billing-header: cc_version=1;\n\nYou are brief.\n\nYou are kind.'],
  ])('what the model is told to be is one message, without the line that names the client’s build: %j', (system) => {
    expect(read({ system })['messages']).toMatchObject([
      { role: 'system', content: 'You are brief.\n\nYou are kind.' },
      { role: 'user' },
    ]);
  });

  it('says the rest of a request in the chat API’s words', () => {
    expect(
      read({
        stop_sequences: ['END'],
        temperature: 0.5,
        top_k: 40,
        top_p: -1,
        stream: true,
        thinking: { type: 'enabled', budget_tokens: 1_024 },
        output_config: { effort: 'max', format: { type: 'json_schema', schema: { type: 'object' } } },
        metadata: { user_id: 'ann' },
        service_tier: 'auto',
        context_management: { edits: [] },
      }),
    ).toEqual({
      model: 'backtalk',
      messages: [{ role: 'user', content: 'Hello' }],
      max_completion_tokens: 64,
      stop: ['END'],
      temperature: 0.5,
      top_k: 40,
      stream: true,
      stream_options: { include_usage: true },
      thinking: { type: 'enabled' },
      reasoning_effort: 'high',
      response_format: { type: 'json_schema', json_schema: { name: 'answer', schema: { type: 'object' } } },
      user: 'ann',
    });
  });

  it.each([
    ['nothing is said of thoughts', {}, false],
    ['they are switched off', { thinking: { type: 'disabled' } }, false],
    ['they are switched on', { thinking: { type: 'enabled', budget_tokens: 1_024 } }, true],
    ['it is left to the model', { thinking: { type: 'adaptive' } }, undefined],
  ])('a template is told whether to think: %s', (_, body, thinks) => {
    const { templateArguments } = readChatRequest(read(body), { messagesMax: 10, temperature: 1 });
    const told =
      templateArguments.length === 0 ? {} : (JSON.parse(Buffer.from(templateArguments).toString()) as object);
    expect(told).toEqual(thinks === undefined ? {} : { enable_thinking: thinks });
  });

  it.each([
    ['ann', 'ann'],
    ['user_0a1b_account__session_3c5d-7e', 'user_0a1b_account_'],
    ['{"device_id":"0a1b","account_uuid":"","session_id":"3c5d"}', '0a1b'],
    ['{"device_id":"0a1b","account_uuid":"a-1","session_id":"3c5d"}', 'a-1'],
    ['{"device_id"', '{"device_id"'],
  ])('a person who asks as %s is %s in every session', (id, user) => {
    expect(read({ metadata: { user_id: id } })['user']).toBe(user);
  });

  it.each([
    [{ type: 'auto' }, { tool_choice: 'auto' }],
    [
      { type: 'any', disable_parallel_tool_use: true },
      { tool_choice: 'required', parallel_tool_calls: false },
    ],
    [{ type: 'none' }, { tool_choice: 'none' }],
    [{ type: 'tool', name: 'rain' }, { tool_choice: { type: 'function', function: { name: 'rain' } } }],
  ])('a choice of tools %j is said in the chat API’s words', (choice, said) => {
    expect(read({ tools: [{ name: 'rain', input_schema: {} }], tool_choice: choice })).toMatchObject(said);
  });

  describe('tools', () => {
    const schema = { type: 'object', properties: {} };
    const rain = { name: 'rain', description: 'Whether it rains.', input_schema: schema };
    const tide = { name: 'tide', input_schema: schema, defer_loading: true };
    const wind = { name: 'wind', input_schema: schema };
    const namesOf = (messages: unknown, tools: unknown = [rain, tide]) =>
      ((read({ messages, tools })['tools'] ?? []) as { function: { name: string } }[]).map((one) => one.function.name);
    const hello = asks(text('Hello'));
    const changes = (...content: unknown[]) => [hello, { role: 'system', content }];

    it('tools are functions, without what an engine of one’s own has no use for', () => {
      expect(
        read({ tools: [{ ...rain, type: 'custom', cache_control: { type: 'ephemeral' }, strict: true }] }),
      ).toMatchObject({
        tools: [{ type: 'function', function: { name: 'rain', description: 'Whether it rains.', parameters: schema } }],
      });
    });

    it('tools that a client holds back are offered once they are found', () => {
      expect(namesOf([hello])).toEqual(['rain']);
      const found = result([{ type: 'tool_reference', tool_name: 'tide' }]);
      expect(namesOf([hello, answers(call), asks(found)])).toEqual(['rain', 'tide']);
      expect(messagesOf([hello, answers(call), asks(found)])).toContainEqual({
        role: 'tool',
        tool_call_id: 'toolu_1',
        content: 'Tool found: tide',
      });
    });

    it('tools come and go in the midst of a conversation', () => {
      const removal = { type: 'tool_removal', tool: { type: 'tool_reference', name: 'rain' } };
      const addition = { type: 'tool_addition', tool: { type: 'tool_reference', name: 'tide' } };
      const definition = { type: 'tool_addition', tool: { type: 'tool_definition', definition: wind } };
      expect(namesOf(changes(removal, addition, definition))).toEqual(['tide', 'wind']);
      expect(messagesOf(changes(removal))).toEqual([{ role: 'user', content: 'Hello' }]);
    });

    it('tools that a service runs are left out beside others, and refused alone', () => {
      const search = { type: 'web_search_20250305', name: 'web_search' };
      expect(namesOf([hello], [search, rain])).toEqual(['rain']);
      expect(() => read({ tools: [search] })).toThrow(/'tools\[0\]\.type'/);
    });
  });

  it.each([
    [{ max_tokens: undefined }, /Missing required parameter: 'max_tokens'/],
    [{ messages: [] }, /'messages': it must hold at least one/],
    [{ messages: [{ role: 'tool', content: '' }] }, /'messages\[0\]\.role'/],
    [{ messages: [asks({ type: 'image', source: { type: 'url', url: 'http://a' } })] }, /content\[0\]\.source\.type/],
    [{ messages: [asks({ type: 'audio' })] }, /Unsupported parameter: 'messages\[0\]\.content\[0\]\.type'/],
    [{ messages: [answers({ ...call, input: undefined })] }, /'messages\[0\]\.content\[0\]\.input'/],
    [
      { messages: [asks(text('A poem.')), answers(text('Roses'))] },
      /the last one must be what a person or a tool says/,
    ],
    [{ messages: [asks(result([{ type: 'tool_reference' }]))] }, /content\[0\]\.content\[0\]\.tool_name/],
    [{ tool_choice: { type: 'constructor' } }, /Unsupported parameter: 'tool_choice'/],
    [{ metadata: { user_id: 'x'.repeat(1_025) } }, /'metadata\.user_id': it may have 1024 characters/],
    [{ messages: [asks(result([{ type: 'text' }]))] }, /content\[0\]\.content\[0\]\.text/],
    [{ tool_choice: { type: 'tool' } }, /Unsupported parameter: 'tool_choice'/],
    [{ mcp_servers: [{ url: 'http://a' }] }, /Unsupported parameter: 'mcp_servers'/],
    [{ thread: { type: 'create' } }, /send all messages, without 'thread'/],
    [{ compaction: {} }, /Unsupported parameter: 'compaction'/],
    [{ container: 'c' }, /Unsupported parameter: 'container'/],
    [{ system: [{ type: 'image' }] }, /'system'/],
  ])('refuses %j by name', (body, message) => {
    expect(() => read(body)).toThrow(message);
  });

  it('holds no more messages than a chat request may', () => {
    const messages = Array.from({ length: 9 }, () => ({ role: 'user', content: 'Hello' }));
    expect(() => read({ messages }, 9)).toThrow(/fewer than 9/);
    expect(read({ messages }, 10)).toHaveProperty('messages');
  });
});
