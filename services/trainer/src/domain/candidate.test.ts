import { TurnCompleted, TurnJudged, TurnJudged_Source, TurnOpened } from '@backtalk/proto/facts';
import { describe, expect, it } from 'vitest';

import { candidateOf } from './candidate.js';
import { recipePresets } from './recipe.js';

const facts = {
  opened: TurnOpened.fromPartial({ turn: 't' }),
  completed: TurnCompleted.fromPartial({ turn: 't' }),
  continued: undefined,
  openedMs: 1_000,
};

describe('when what a turn is judged by was said', () => {
  const said = (judged: Partial<TurnJudged>, continuedMs?: number) => {
    const message = TurnJudged.fromPartial({ turn: 't', ...judged });
    const delivered = { message, sequence: 1, timeMs: 9_000 };
    return candidateOf(delivered, { ...facts, continuedMs }, recipePresets.tiny.recipe).saidAtMs;
  };

  it.each([
    ['with the next state, by votes', { revision: 0 }, 5_000, 5_000],
    ['when it was judged, by feedback', { revision: 1, source: TurnJudged_Source.SOURCE_FEEDBACK }, 5_000, 9_000],
    [
      'with the request, where nothing was said after',
      { revision: 1, source: TurnJudged_Source.SOURCE_OUTCOME },
      undefined,
      1_000,
    ],
    [
      'when its attempt ended, by an outcome',
      { revision: 1, source: TurnJudged_Source.SOURCE_OUTCOME, outcome: { score: 1, attempts: 1, turns: 1 } },
      undefined,
      9_000,
    ],
  ])('%s', (_, judged, continuedMs, ms) => {
    expect(said(judged, continuedMs)).toBe(ms);
  });
});
