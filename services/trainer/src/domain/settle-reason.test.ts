import { TurnContinued } from '@backtalk/proto/facts';
import { describe, expect, it } from 'vitest';

import { completedTurn, judgedTurn, openedTurn } from '../testing/turns.js';
import { neverTrainable, type TurnFacts } from './settle-reason.js';

const turn = { turn: 't' };
const whole = {
  opened: openedTurn(turn),
  completed: completedTurn(turn),
  continued: TurnContinued.fromPartial({ turn: 't', main: true }),
};

function reason(facts: Partial<TurnFacts>, judged = judgedTurn(turn)): string | undefined {
  return neverTrainable(judged, { ...whole, ...facts });
}

describe('why a turn is never trained on', () => {
  it('has no reason when everything is there', () => {
    expect(reason({})).toBeUndefined();
    expect(reason({ continued: undefined })).toBeUndefined();
  });

  it('is that the log has lost it', () => {
    expect(reason({ completed: undefined })).toBe('missing');
    expect(reason({ opened: undefined })).toBe('missing');
  });

  it('is that somebody said no, wherever that was said', () => {
    const no = { train: false, source: 'session' };
    expect(reason({ opened: { ...whole.opened, consent: no } })).toBe('opted_out');
    expect(reason({ continued: { ...whole.continued, consent: no } })).toBe('opted_out');
  });

  it('is that two versions made it', () => {
    expect(reason({ completed: { ...whole.completed, weightsVersionAtEnd: 'backtalk-v1' } })).toBe('version_changed');
  });

  it('is that it stands beside the conversation, unless feedback speaks about it', () => {
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
  ])('is %s', (_, part) => {
    expect(reason({ completed: { ...whole.completed, ...part } })).toBe('malformed');
  });
});
