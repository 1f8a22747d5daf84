import { describe, expect, it } from 'vitest';
import { chunkForClient, forClient, type ClientView } from './frame.js';

const view: ClientView = {
  turn: 'turn_1',
  model: 'backtalk',
  wantsLogprobs: false,
  wantsTokenIds: false,
  wantsUsage: false,
};
const chunk = () => ({
  id: 'chatcmpl-1',
  model: 'backtalk-v3',
  prompt_token_ids: [1, 2],
  usage: { prompt_tokens: 2 },
  choices: [{ index: 0, delta: { content: 'a' }, logprobs: { content: [] }, token_ids: [5], finish_reason: null }],
});
const seen = (value: object) => JSON.parse(JSON.stringify(value)) as unknown;
const event = (view: ClientView, choice = 0) => chunkForClient({ raw: chunk(), choice }, view);
const data = (text: string) => JSON.parse(text.replace(/^data: /, '')) as unknown;

describe('forClient', () => {
  it('shows our id and the name that was asked for, and hides ids, logprobs and counts', () => {
    expect(data(event(view))).toEqual({
      id: 'turn_1',
      model: 'backtalk',
      choices: [{ index: 0, delta: { content: 'a' }, logprobs: null, finish_reason: null }],
    });
  });

  it('shows them to a client that asked', () => {
    const all = { ...view, wantsLogprobs: true, wantsTokenIds: true, wantsUsage: true };
    expect(data(event(all))).toEqual({ ...chunk(), id: 'turn_1', model: 'backtalk' });
  });

  it('leaves out the chunk of counts for a client that did not ask', () => {
    expect(event(view, -1)).toBe('');
    expect(data(event({ ...view, wantsUsage: true }, -1))).toMatchObject({ usage: { prompt_tokens: 2 } });
  });

  it('leaves the counts of a whole answer in place', () => {
    expect(seen(forClient(chunk(), view))).toMatchObject({ usage: { prompt_tokens: 2 } });
  });
});
