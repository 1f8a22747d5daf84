import { ShownLessons, TurnCompleted, TurnContinued } from '@backtalk/proto/facts';
import { describe, expect, it } from 'vitest';

import { recipeWith } from '../testing/candidates.js';
import { completedTurn, judgedTurn, openedTurn } from '../testing/turns.js';
import { neverTrainable, type TurnFacts } from './settle-reason.js';

const turn = { turn: 't' };
const whole = {
  opened: openedTurn(turn),
  completed: completedTurn(turn),
  continued: TurnContinued.fromPartial({ turn: 't', main: true }),
};

function reason(facts: Partial<TurnFacts>, judged = judgedTurn(turn)): string | undefined {
  return neverTrainable(judged, { ...whole, ...facts }, recipeWith({ answerTokensMax: 10, sampleTokensMax: 100 }));
}

describe('why a turn is never trained on', () => {
  it('finds no reason against training when everything is there', () => {
    expect(reason({})).toBeUndefined();
    expect(reason({ continued: undefined })).toBeUndefined();
  });

  it('never trains on a turn that the log has lost', () => {
    expect(reason({ completed: undefined })).toBe('missing');
    expect(reason({ opened: undefined })).toBe('missing');
  });

  it('never trains on a turn with a no, wherever that was said', () => {
    const no = { train: false, source: 'session' };
    expect(reason({ opened: { ...whole.opened, consent: no } })).toBe('opted_out');
    expect(reason({ continued: { ...whole.continued, consent: no } })).toBe('opted_out');
  });

  it('never trains on a turn that two versions made', () => {
    expect(reason({ completed: { ...whole.completed, weightsVersionAtEnd: 'backtalk-v1' } })).toBe('version_changed');
  });

  it('never trains on a turn beside the conversation, unless feedback speaks about it', () => {
    const continued = TurnContinued.fromPartial({ turn: 't', main: false });
    const spoken = judgedTurn({ ...turn, judged: { evidence: [{ name: 'feedback', verdict: 1, detail: '' }] } });
    expect(reason({ continued })).toBe('side_turn');
    expect(reason({ continued }, spoken)).toBeUndefined();
  });

  it.each([
    ['no answer', { answerIds: [], logprobs: [] }],
    ['a logprob missing', { logprobs: [-1] }],
    ['a logprob that is no number', { logprobs: whole.completed.answerIds.map(() => Number.NaN) }],
    ['the engine’s mark for minus infinity', { logprobs: whole.completed.answerIds.map(() => -9999) }],
  ])('never trains on a turn with %s', (_, part) => {
    expect(reason({ completed: { ...whole.completed, ...part } })).toBe('malformed');
  });

  it('never trains on a turn with more tokens than a sample may have, of which an answer’s trained part counts', () => {
    const shaped = (prompt: number, answer: number) => {
      const ids = (count: number) => Array.from({ length: count }, (_, n) => n + 1);
      const part = { promptIds: ids(prompt), answerIds: ids(answer), logprobs: ids(answer).map(() => -1) };
      return reason({ completed: { ...whole.completed, ...part } });
    };
    expect([shaped(90, 50), shaped(91, 50), shaped(91, 9), shaped(100, 1)]).toEqual([
      undefined,
      'too_long',
      undefined,
      'too_long',
    ]);
  });

  it('never trains on a turn at another temperature than the only one, unless the policy answers it anew in the step', () => {
    const { sampling, ...completed } = whole.completed;
    const at = (temperature: number, onlyTemperature: number, lessons: { lesson: string; text: string }[] = []) => {
      const shown = lessons.length === 0 ? undefined : ShownLessons.fromPartial({ lessons });
      const given = TurnCompleted.fromPartial({ ...completed, sampling: { ...sampling, temperature }, shown });
      return neverTrainable(judgedTurn(turn), { ...whole, completed: given }, recipeWith({ onlyTemperature }));
    };
    expect([at(0.8, 1), at(1, 1), at(0.8, 0)]).toEqual(['temperature', undefined, undefined]);
    expect(at(0.8, 1, [{ lesson: 'l', text: 'Answer in one sentence.' }])).toBeUndefined();
  });
});
