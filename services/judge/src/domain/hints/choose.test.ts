import { describe, expect, it } from 'vitest';
import { chooseHint } from './choose.js';

const hints = [
  'Never use any words of more than three letters.',
  'Answer in one sentence.',
  'Answer in one brief sentence.',
  'In one sentence, please answer.',
];

describe('chooseHint', () => {
  it('takes the longest or the shortest', () => {
    const longest = 'Never use any words of more than three letters.';
    expect(chooseHint(hints, '', 'longest')).toEqual({ hint: longest, others: [] });
    expect(chooseHint(hints, '', 'shortest')).toEqual({ hint: 'Answer in one sentence.', others: [] });
  });

  it('leaves the choice among all that are accepted to the training worker, each once, the longest first', () => {
    const [longest = '', ...others] = hints;
    const given = ['Be brief.', ...others, others[0] ?? '', longest];
    expect(chooseHint(given, '', 'overlap')).toEqual({ hint: longest, others });
    expect(chooseHint(['Be brief.'], '', 'overlap')).toEqual({ hint: '', others: [] });
  });

  it('accepts no hint of ten characters, no essay, and no copy of the answer', () => {
    expect(chooseHint(['Be brief.'], '', 'longest').hint).toBe('');
    expect(chooseHint(['用公里回答。'], '', 'longest').hint).toBe('用公里回答。');
    expect(chooseHint(['短。'], '', 'longest').hint).toBe('');
    expect(chooseHint(['long '.repeat(200)], '', 'longest').hint).toBe('');
    expect(
      chooseHint(['The capital of Australia is Sydney.'], 'Well: the capital of Australia is Sydney, a city', 'longest')
        .hint,
    ).toBe('');
  });

  it('keeps at most three sentences, on one line', () => {
    expect(chooseHint(['One two three.\nFour five. Six. Seven.'], '', 'longest').hint).toBe(
      'One two three. Four five. Six.',
    );
    expect(chooseHint(['用公里回答。用中文回答。不要表格。不要列表。'], '', 'longest').hint).toBe(
      '用公里回答。用中文回答。不要表格。',
    );
  });
});
