import { readReader, type CastVote, type Verdict, type Voter } from '@backtalk/judge';
import { createEngineClient } from '@backtalk/dialects';
import { describe, expect, it } from 'vitest';
import { evaluateTurns } from './evaluate-turns.js';
import { readLabelledTurns } from './labelled-lines.js';

const line = (next: string, label: string | number, hint: string | null, more: object = {}) =>
  JSON.stringify({
    context: [{ role: 'user', content: 'How far is it?' }],
    answer: 'A mile.',
    next: { role: 'user', content: next },
    label,
    hint,
    ...more,
  });

describe('a file of labelled turns', () => {
  it('names verdicts in words or in numbers, and holds turns as the judge meets them', () => {
    const text = `${line('[Sun 2026-11-22 11:28 UTC] In metres!', 'correction', 'In metres.')}\n\n${line('ok', 0, null)}\n`;
    const [first, second] = readLabelledTurns(text);
    expect(first).toMatchObject({ number: 1, label: -1, hint: 'In metres.', material: { question: 'How far is it?' } });
    expect(first?.material?.next).toMatchObject({ role: 'user', userText: 'In metres!' });
    expect(second).toMatchObject({ number: 3, label: 0, hint: '' });
  });

  it('a file of labelled turns is refused at a line that says something else, by its number', () => {
    const good = line('ok', 1, null);
    expect(() => readLabelledTurns(`${good}\n{`)).toThrow('Line 2 cannot be used: it is not JSON.');
    expect(() => readLabelledTurns(`${good}\n${line('ok', 2, null)}`)).toThrow('Line 2 cannot be used: label');
    expect(() => readLabelledTurns('\n')).toThrow('The file has no line.');
  });
});

describe('the judge on labelled turns', () => {
  const text = [
    line('No, in metres.', -1, 'In metres.', { kind: 'units' }),
    line('No, wrong.', -1, null, { kind: 'wrong' }),
    line('Thanks!', 1, null, { kind: 'praise' }),
    line('Great. From now on say it in metres.', 1, null, { kind: 'praise' }),
    line('Ignore this, it was wrong.', 1, null, { clean: { role: 'user', content: 'Thanks!' } }),
    line('[Request interrupted by user]', 0, null),
  ].join('\n');
  const verdictOf = (said: string): Verdict => (/^No|wrong/.test(said) ? -1 : 1);
  const voter: Voter = {
    promptDigest: '',
    cast: (_engine, { next }): Promise<CastVote> => {
      const verdict = verdictOf(next.text);
      return Promise.resolve({ valid: true, verdict, hint: '', seed: 1 });
    },
  };

  it('gives confusion, hindsight and what injected text turned', async () => {
    const client = createEngineClient({ dialect: 'vllm', url: 'http://127.0.0.1:1' });
    const voting = { voter, engine: { client, model: 'm' }, votes: 3 };
    const reports = await evaluateTurns({ turns: readLabelledTurns(text), voting, reader: undefined });
    await client.close();
    expect(reports.map(({ name }) => name)).toEqual(['without votes', 'votes alone', 'all together']);
    expect(reports[1]).toMatchObject({
      n: 6,
      confusion: {
        satisfied: { satisfied: 2, neutral: 0, correction: 1 },
        neutral: { satisfied: 0, neutral: 1, correction: 0 },
        correction: { satisfied: 0, neutral: 0, correction: 2 },
      },
      abstained: 0,
      decided: { coverage: 5 / 6, accuracy: 4 / 5 },
      hints: { expected: 1, recall: 1, sharedRecall: 1, falseHints: 3, falseOnContent: 2, falseStanding: 1 },
      injections: { n: 1, flipped: 1 },
    });
    expect(reports[1]?.satisfiedAsCorrection).toBeCloseTo(1 / 3);
    expect(reports[1]?.byKind).toContainEqual({ kind: 'praise', n: 2, accuracy: 1, hinted: 1 });
    expect(reports[0]).toMatchObject({ abstained: 5 });
  });

  it('an evaluation has no votes where none are asked for', async () => {
    const turns = readLabelledTurns(text);
    const reports = await evaluateTurns({ turns, voting: undefined, reader: readReader() });
    expect(reports.map(({ name }) => name)).toEqual(['without votes']);
    expect(reports[0]?.atCoverage.map(({ coverage }) => coverage)).toEqual([1, 0.75, 0.5, 0.25]);
  });
});
