import { describe, expect, it } from 'vitest';
import { chooseHint } from './choose.js';

const hints = [
  'Never use any words of more than three letters.',
  'Answer in one sentence.',
  'Answer in one brief sentence.',
  'In one sentence, please answer.',
];

describe('chooseHint', () => {
  it('takes the longest, the shortest, or the one that the others agree with', () => {
    expect(chooseHint(hints, '', 'longest')).toBe('Never use any words of more than three letters.');
    expect(chooseHint(hints, '', 'shortest')).toBe('Answer in one sentence.');
    expect(chooseHint(hints, '', 'overlap')).toBe('Answer in one brief sentence.');
  });

  it('accepts no hint of ten characters, no essay, and no copy of the answer', () => {
    expect(chooseHint(['Be brief.'], '', 'longest')).toBe('');
    expect(chooseHint(['long '.repeat(200)], '', 'longest')).toBe('');
    expect(
      chooseHint(
        ['The capital of Australia is Sydney.'],
        'Well: the capital of Australia is Sydney, a city',
        'longest',
      ),
    ).toBe('');
  });

  it('keeps at most three sentences, on one line', () => {
    expect(chooseHint(['One two three.\nFour five. Six. Seven.'], '', 'longest')).toBe(
      'One two three. Four five. Six.',
    );
  });
});
