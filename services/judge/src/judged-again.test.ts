import { newId, Refusals } from '@backtalk/kit';
import { until } from '@backtalk/kit/testing';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { JudgeRig, tenant } from './testing/judge-rig.js';

let rig: JudgeRig;

beforeAll(async () => {
  rig = await JudgeRig.start();
});
afterAll(() => rig.stop());
beforeEach(() => {
  rig.grade = () => '\\boxed{-1}';
  rig.engine.settings.faults = {};
});
afterEach(() => rig.stopJudges());

const neutral = 'The train leaves at nine.';

it('a turn that is judged again has a second judgement beside the one that counts, and that stays as it is', async () => {
  await rig.judge();
  const talk = await rig.turn([{ text: 'Too long! One short sentence, please.' }]);
  const first = await rig.untilJudged(talk);
  expect(first.verdict).toBe(-1);
  rig.grade = () => '[HINT_START]Answer in one brief sentence.[HINT_END] \\boxed{+1}';
  await rig.ask(talk, 'one');
  const { judged, refused } = await rig.untilRejudged(talk, 'one');
  expect(refused).toBe('');
  expect(judged).toMatchObject({ turn: talk.turn, session: talk.session, revision: 0, verdict: 1, confidence: 1 });
  expect(judged?.votes).toHaveLength(3);
  expect(await rig.judgements(talk.user)).toBe(1);
  expect(await rig.judged(talk)).toEqual(first);
});

it('each asking has a judgement of its own, of the judge as it is then', async () => {
  await rig.judge({ votes: 1 });
  const talk = await rig.turn([{ text: neutral }]);
  await rig.untilJudged(talk);
  await rig.ask(talk, 'one');
  expect((await rig.untilRejudged(talk, 'one')).judged?.verdict).toBe(-1);
  rig.grade = () => '\\boxed{+1}';
  await rig.ask(talk, 'two');
  expect((await rig.untilRejudged(talk, 'two')).judged?.verdict).toBe(1);
  expect((await rig.untilRejudged(talk, 'one')).judged?.verdict).toBe(-1);
});

it('words that only judge are marked in a second judgement as in the first', async () => {
  rig.grade = () => '\\boxed{-1}';
  await rig.judge({ votes: 1 });
  const talk = await rig.turn([{ text: 'Wrong again.' }]);
  const first = await rig.untilJudged(talk);
  await rig.ask(talk, 'one');
  const { judged } = await rig.untilRejudged(talk, 'one');
  expect(judged).toEqual(first);
  expect(first.bare).toBe(true);
});

it('a turn is not judged again where its person has said no, or where the log does not hold it, and that is said', async () => {
  await rig.judge();
  const no = await rig.turn([{ text: neutral }], { train: false });
  const cut = await rig.turn([]);
  await rig.ask(no, 'one');
  await rig.ask(cut, 'one');
  const never = { user: newId(), turn: `turn_${newId()}`, session: 's' };
  await rig.ask(never, 'one');
  expect(await rig.untilRejudged(no, 'one')).toMatchObject({ judged: undefined, refused: 'opted_out' });
  for (const one of [cut, never])
    expect(await rig.untilRejudged(one, 'one')).toMatchObject({ judged: undefined, refused: 'gone' });
});

it('a turn of someone who has said no since is not shown to another judge, whatever they said then', async () => {
  const judge = await rig.judge();
  const talk = await rig.turn([{ text: neutral }]);
  await rig.untilJudged(talk);
  const { user, session } = await rig.turn([], { user: talk.user });
  await new Refusals(rig.admin).note({ tenant, user, session, source: 'request', turn: 't' });
  const before = await rig.metric(judge, 'votes_cast_total{result="-1"}');
  await rig.ask(talk, 'one');
  expect(await rig.untilRejudged(talk, 'one')).toMatchObject({ judged: undefined, refused: 'opted_out' });
  expect(await rig.metric(judge, 'votes_cast_total{result="-1"}')).toBe(before);
});

it('a turn whose conversation cannot be read any more is gone, and no dead letter', async () => {
  await rig.judge();
  const talk = await rig.turn([{ text: neutral }], { messages: 'no JSON' });
  await rig.ask(talk, 'one');
  expect(await rig.untilRejudged(talk, 'one')).toMatchObject({ judged: undefined, refused: 'gone' });
});

it('votes are cast again on the share of turns on which they are cast', async () => {
  const judge = await rig.judge({ voteShare: 0 });
  const talk = await rig.turn([{ text: 'Too long! One short sentence, please.' }]);
  const first = await rig.untilJudged(talk);
  await rig.ask(talk, 'one');
  expect((await rig.untilRejudged(talk, 'one')).judged).toEqual(first);
  expect(await rig.metric(judge, 'votes_cast_total{result="-1"}')).toBe(0);
});

it('what people wait for is judged before what is judged again', async () => {
  const [first, again, live] = ['The first one.', 'That again.', 'Said just now.'];
  const heard: string[] = [];
  rig.grade = (prompt) => {
    heard.push(...[again, live].filter((text) => prompt.includes(text)));
    return '\\boxed{+1}';
  };
  await rig.judge({ votes: 1, voteConcurrency: 1, voteWaitMs: 5_000 });
  const judged = await rig.turn([{ text: again }]);
  await rig.untilJudged(judged);
  rig.engine.settings.faults = { hang: true };
  const before = rig.engine.counts.requests;
  await rig.turn([{ text: first }]);
  await until(() => rig.engine.counts.requests > before, { what: 'The vote that takes long' });
  await rig.ask(judged, 'one');
  const queued = async (id: string) => (await rig.valkeyText()).includes(id);
  await until(() => queued(`${judged.turn}-again-one-v0`), { what: 'The vote of what is judged again' });
  const spoken = await rig.turn([{ text: live }]);
  await until(() => queued(`${spoken.turn}-continued-v0`), { what: 'The vote of what was said just now' });
  rig.engine.settings.faults = {};
  await rig.untilRejudged(judged, 'one');
  expect(heard).toEqual([again, live, again]);
});
