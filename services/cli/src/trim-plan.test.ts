import { expect, it } from 'vitest';
import { TrimPlanner, type TrimRow } from './trim-plan.js';

const row = (name: TrimRow['name'], sequence: number, timeMs: number): TrimRow => ({
  name,
  sequence,
  timeMs,
  bytes: 1,
  payload: undefined,
  headers: {},
  ids: { tenant: 'acme', user: 'ann', policy: 'backtalk', turn: 'one' },
});

it('an old turn goes although an operator has had it judged again since, and what came of that goes with it', () => {
  const planner = new TrimPlanner({ beforeMs: 100, alsoNeeded: true, settled: new Map() });
  planner.add(row('turnOpened', 1, 10));
  planner.add(row('judgementAsked', 7, 500));
  planner.add(row('turnRejudged', 8, 501));
  expect(planner.plan()).toMatchObject({ turns: 1, rows: [{ sequence: 1 }, { sequence: 7 }, { sequence: 8 }] });
});

it('an old turn of which something was said since stays', () => {
  const planner = new TrimPlanner({ beforeMs: 100, alsoNeeded: true, settled: new Map() });
  planner.add(row('turnOpened', 1, 10));
  planner.add(row('feedbackGiven', 2, 500));
  expect(planner.plan()).toMatchObject({ turns: 0, rows: [] });
});
