import { describe, expect, it } from 'vitest';
import { earlierAnswer, leftToLog, withItems } from './left-to-log.js';

const refer = (id: string) => ({ type: 'item_reference', id });
const question = { role: 'user', content: 'Rain?' };
const call = (id: string) => ({ id, type: 'function', function: { name: 'rain', arguments: `{"place":"${id}"}` } });
const callItem = (id: string, from = id) => ({
  type: 'function_call',
  call_id: id,
  name: 'rain',
  arguments: `{"place":"${from}"}`,
});
const thought = { type: 'reasoning', content: [{ type: 'reasoning_text', text: 'Hm.' }] };
const message = (content: string) => ({ type: 'message', role: 'assistant', content });
const answered = (given: { text?: string; reasoning?: string; calls?: readonly object[] }) => {
  const { text = '', reasoning = '', calls = [] } = given;
  const toolCalls = calls.length === 0 ? new Uint8Array() : Buffer.from(JSON.stringify(calls));
  return earlierAnswer({ turn: 'turn_a', text, reasoning, toolCalls });
};
const itemsOf = (given: Parameters<typeof answered>[0], ids: readonly string[]) =>
  withItems(ids.map(refer), { turn_a: answered(given) });

describe('leftToLog', () => {
  it('the log is to be asked for each turn once, and for nothing else', () => {
    const input = [
      question,
      refer('rs_a_0'),
      refer('msg_a_1'),
      refer('msg_b_0'),
      refer('no id of ours'),
      { id: 'fc_c_0' },
    ];
    expect(leftToLog(input, 'turn_1')).toEqual({ previous: 'turn_1', referred: ['turn_a', 'turn_b'] });
    expect(leftToLog('Hello', null)).toEqual({ previous: undefined, referred: [] });
  });
});

describe('withItems', () => {
  it.each([
    ['words', { text: 'No.' }, ['msg_a_0'], [message('No.')]],
    ['an answer that said nothing', {}, ['msg_a_0'], [message('')]],
    [
      'a thought, words and calls',
      { reasoning: 'Hm.', text: 'A moment.', calls: [call('c'), call('d')] },
      ['rs_a_0', 'msg_a_1', 'fc_a_2', 'fc_a_3'],
      [thought, message('A moment.'), callItem('c'), callItem('d')],
    ],
    ['one call of two', { text: 'So.', calls: [call('c'), call('d')] }, ['fc_a_2'], [callItem('d')]],
    [
      'calls before white space',
      { text: '\n', calls: [call('c'), call('d')] },
      ['fc_a_0', 'fc_a_1'],
      [callItem('c'), callItem('d')],
    ],
    [
      'words with a thought between them, once',
      { text: 'So.', reasoning: 'Hm.' },
      ['msg_a_0', 'rs_a_1', 'msg_a_2'],
      [message('So.'), thought],
    ],
    [
      'a call without a name of its own, by its item',
      { reasoning: 'Hm.', calls: [call('')] },
      ['fc_a_1'],
      [callItem('fc_a_1', '')],
    ],
  ])('%s are given as they were', (_, given, ids, items) => {
    expect(itemsOf(given, ids)).toEqual(items);
  });

  it.each(['msg_b_0', 'fc_a_9', 'msg_1', 'constructor', '__proto__'])('what is not there is named: %s', (id) => {
    const refusal: unknown = expect.objectContaining({ param: 'input[1].id' });
    const read = () => withItems([question, refer(id)], { turn_a: answered({ text: 'No.' }) });
    expect(read).toThrow(expect.objectContaining({ code: 'item_not_found', detail: refusal }));
  });
});
