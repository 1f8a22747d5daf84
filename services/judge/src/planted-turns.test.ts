// Planted turns watch the judge: through a real judge, a real queue and an engine whose grades the test decides.
import { until } from '@backtalk/kit/testing';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import type { PlantedTurn } from './domain/planted.js';
import { readPlanted } from './outputs/labelled-set.js';
import type { Judge } from './service.js';
import { JudgeRig } from './testing/judge-rig.js';

const planted = readPlanted();
const boxed = { satisfied: '\\boxed{+1}', unrelated: '\\boxed{0}', correction: '\\boxed{-1}' } as const;
const wrong = { satisfied: boxed.correction, unrelated: boxed.correction, correction: boxed.satisfied } as const;
const said = [{ text: 'The train leaves at nine.' }];
let rig: JudgeRig;

beforeAll(async () => {
  rig = await JudgeRig.start();
});
afterAll(() => rig.stop());
afterEach(() => rig.stopJudges());

/** Grades planted turns as the table says, and every other turn +1. */
function gradeBy(table: Readonly<Record<PlantedTurn['label'], string>>): void {
  rig.grade = (prompt) => {
    const known = planted.find(({ question, next }) => prompt.includes(question) && prompt.includes(next));
    return known === undefined ? boxed.satisfied : table[known.label];
  };
}

/** Says as many turns as are wanting, each of which has one planted beside it. */
async function untilPlanted(judge: Judge, count: number): Promise<void> {
  const judged = () => rig.metric(judge, 'planted_judged_total');
  const wanting = count - (await judged());
  await Promise.all(Array.from({ length: Math.max(0, wanting) }, () => rig.turn(said)));
  await until(async () => (await judged()) >= count, { timeoutMs: 60_000, what: `${count} planted turns` });
}

it('votes of a judge that is wrong on planted turns stop counting by name, and count again when it is right', async () => {
  gradeBy(wrong);
  const judge = await rig.judge({ plantedShare: 1, votes: 1 });
  await untilPlanted(judge, 18);
  const before = await rig.untilJudged(await rig.turn(said));
  expect(before).toMatchObject({ verdict: 1, votes: [{ valid: true }] });
  await untilPlanted(judge, 20);
  expect(await rig.metric(judge, 'votes_trusted')).toBe(0);
  expect(await rig.metric(judge, 'planted_accuracy_ratio')).toBe(0);
  const talk = await rig.turn(said);
  expect(await rig.untilJudged(talk)).toMatchObject({ verdict: 0, votes: [{ valid: false, reason: 'untrusted' }] });
  gradeBy(boxed);
  // The newest forty, of which these are all.
  await untilPlanted(judge, (await rig.metric(judge, 'planted_judged_total')) + 40);
  expect(await rig.metric(judge, 'votes_trusted')).toBe(1);
  expect(await rig.untilJudged(await rig.turn(said))).toMatchObject({ verdict: 1, votes: [{ valid: true }] });
});

it('a judge that has just begun is watched on every turn until twenty were judged, and from then on at the usual share', async () => {
  gradeBy(wrong);
  const rare = { plantedShare: 1e-6, votes: 1 };
  const first = await rig.judge(rare);
  await untilPlanted(first, 20);
  expect(await rig.metric(first, 'votes_trusted')).toBe(0);
  await Promise.all(Array.from({ length: 10 }, async () => rig.untilJudged(await rig.turn(said))));
  expect(await rig.metric(first, 'planted_judged_total')).toBe(20);
  await rig.stopJudges();
  const second = await rig.judge(rare);
  expect(await rig.metric(second, 'votes_trusted')).toBe(1);
  await untilPlanted(second, 20);
  expect(await rig.metric(second, 'votes_trusted')).toBe(0);
});

it('a planted turn leaves nothing in the log, and takes no vote where none is cast', async () => {
  gradeBy(boxed);
  const judge = await rig.judge({ plantedShare: 1, voteShare: 0 });
  const talk = await rig.turn(said);
  expect((await rig.untilJudged(talk)).votes).toEqual([]);
  expect(await rig.metric(judge, 'planted_judged_total')).toBe(0);
  for await (const { message } of rig.reader.read(['turnJudged'])) expect(message.turn).not.toContain('planted');
});
