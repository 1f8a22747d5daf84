// How an attempt at a task went, on each of its turns.
import { haveSettledAll, until } from '@backtalk/kit/testing';
import { TurnJudged_Source } from '@backtalk/proto/facts';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { JudgeRig, type Talk } from './testing/judge-rig.js';

let rig: JudgeRig;

beforeAll(async () => {
  rig = await JudgeRig.start();
});
afterAll(() => rig.stop());
beforeEach(() => {
  rig.grade = () => '\\boxed{+1}';
});
afterEach(() => rig.stopJudges());

const score = { score: 0.5, attempts: 4, turns: 0 };

/** Two steps, of which nothing continued the last. */
async function attempt(): Promise<{ first: Talk; last: Talk; turns: string[] }> {
  const first = await rig.turn([{ text: 'The train leaves at nine.' }]);
  const last = await rig.turn([], { user: first.user, session: first.session });
  return { first, last, turns: [first.turn, last.turn] };
}

it('an outcome stands beside what was judged of each step, and alone where nothing followed', async () => {
  const judge = await rig.judge();
  const { first, last, turns } = await attempt();
  // The collector knows which session they are in, whatever the gateway took it for.
  const session = 'session_placed';
  await rig.close({ ...first, session }, turns, score);
  const outcome = { score: 0.5, attempts: 4, turns: 2 };
  const step = await rig.untilJudged(first, 1);
  expect(step).toMatchObject({ verdict: 1, source: TurnJudged_Source.SOURCE_VOTES, session, outcome });
  expect(step.votes).toHaveLength(3);
  const alone = { verdict: 0, votes: [], source: TurnJudged_Source.SOURCE_OUTCOME, session, outcome };
  expect(await rig.untilJudged(last, 1)).toMatchObject(alone);
  await until(async () => (await rig.metric(judge, 'sessions_closed_total{result="outcome"}')) === 1);
  // The rule for sessions in which nothing trains is for those without an outcome.
  await until(() => haveSettledAll(rig.admin, 'TURNS', ['judge_sessionClosed']));
  expect(await rig.metric(judge, 'sessions_closed_total{result="effective"}')).toBe(0);
  expect(await rig.judgements(first.user)).toBe(3);
});

it('an outcome stays with a step of which more is said later', async () => {
  await rig.judge();
  const { first, last, turns } = await attempt();
  await rig.close(first, turns, score);
  await rig.untilJudged(last, 1);
  await rig.feedback(last, { hasScore: true, score: -1 });
  expect(await rig.untilJudged(last, 2)).toMatchObject({ verdict: -1, outcome: { score: 0.5 } });
  await rig.continue(last, [{ text: 'No, by train.' }]);
  expect(await rig.untilJudged(last, 3)).toMatchObject({ verdict: -1, outcome: { score: 0.5 } });
});

it('what is said after an outcome stands below it', async () => {
  await rig.judge();
  const { first, last, turns } = await attempt();
  await rig.close(first, turns, score);
  await rig.untilJudged(last, 1);
  rig.grade = () => '\\boxed{-1}';
  await rig.continue(last, [{ text: 'No, by bus. Always say which bus.' }]);
  const said = await rig.untilJudged(last, 2);
  expect(said).toMatchObject({ verdict: -1, stands: true, outcome: { score: 0.5, turns: 2 } });
  expect(said.votes).toHaveLength(3);
});

it('an outcome is told of the other steps where the request of one is not in the log', async () => {
  await rig.judge();
  const { first, last, turns } = await attempt();
  await rig.close(first, [...turns, 'turn_lost'], score);
  expect((await rig.untilJudged(first, 1)).outcome?.turns).toBe(2);
  expect((await rig.untilJudged(last, 1)).outcome?.turns).toBe(2);
});

it('an outcome waits for the votes of its steps', async () => {
  const { first, last, turns } = await attempt();
  await rig.close(first, turns, score);
  await rig.judge({ backend: 'free' });
  expect(await rig.untilJudged(first, 1)).toMatchObject({ verdict: 1, outcome: { turns: 2 } });
  expect((await rig.untilJudged(last, 1)).outcome?.turns).toBe(2);
});

it('an outcome is not told of a step that may not be learned from', async () => {
  const judge = await rig.judge();
  const first = await rig.turn([{ text: 'The train leaves at nine.' }]);
  const secret = await rig.turn([], { user: first.user, session: first.session, train: false });
  await rig.close(first, [first.turn, secret.turn], score);
  expect((await rig.untilJudged(first, 1)).outcome?.turns).toBe(1);
  await until(async () => (await rig.metric(judge, 'sessions_closed_total{result="outcome"}')) === 1);
  expect(await rig.judged(secret, 1)).toBeUndefined();
});
