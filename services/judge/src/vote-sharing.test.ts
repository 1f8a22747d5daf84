import { startFakeEngine } from '@backtalk/dialects/testing';
import { deadLetters, newId } from '@backtalk/kit';
import { haveSettledAll, until } from '@backtalk/kit/testing';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Judge } from './service.js';
import { JudgeRig, tenant } from './testing/judge-rig.js';

let rig: JudgeRig;

beforeAll(async () => {
  rig = await JudgeRig.start();
});
afterAll(() => rig.stop());
beforeEach(() => {
  rig.grade = () => '\\boxed{+1}';
  rig.engine.settings.faults = {};
  rig.engine.settings.firstTokenMs = 0;
  delete rig.engine.settings.heard;
});
afterEach(() => rig.stopJudges());

const neutral = 'The train leaves at nine.';
const castBy = (judge: Judge) => rig.metric(judge, 'votes_cast_total{result="1"}');

describe('judges that share the queue of votes', () => {
  it('judges cast the votes of one turn together, and store one judgement', async () => {
    rig.engine.settings.firstTokenMs = 500;
    const judges = await Promise.all([rig.judge({ voteConcurrency: 1 }), rig.judge({ voteConcurrency: 1 })]);
    const talk = await rig.turn([{ text: neutral }]);
    expect((await rig.untilJudged(talk)).votes).toHaveLength(3);
    const cast = await Promise.all(judges.map(castBy));
    expect(Math.min(...cast)).toBeGreaterThan(0);
    expect(cast.reduce((sum, count) => sum + count, 0)).toBe(3);
    expect(await rig.judgements(talk.user)).toBe(1);
  });

  it('judges that share a queue report the same length and the same oldest age', async () => {
    rig.engine.settings.faults = { busy: true };
    const judges = await Promise.all([rig.judge(), rig.judge()]);
    const talk = await rig.turn([{ text: neutral }]);
    const report = (length: number) =>
      until(async () => {
        const lengths = await Promise.all(judges.map((judge) => rig.metric(judge, 'votes_waiting')));
        const ages = await Promise.all(judges.map((judge) => rig.metric(judge, 'votes_oldest_age_seconds')));
        return lengths.every((one) => one === length) && ages.every((age) => age > 0 === length > 0);
      });
    await report(3);
    rig.engine.settings.faults = {};
    await rig.untilJudged(talk);
    await report(0);
  });

  it('the other judges finish what a killed judge began, and judge it once', async () => {
    rig.engine.settings.faults = { hang: true };
    const before = rig.engine.counts.requests;
    const killed = await rig.judgeProcess();
    const user = newId();
    const talks = [await rig.turn([{ text: neutral }], { user }), await rig.turn([{ text: neutral }], { user })];
    await until(() => rig.engine.counts.requests > before);
    await killed.kill();
    rig.engine.settings.faults = {};
    await rig.judge();
    for (const talk of talks) expect((await rig.untilJudged(talk)).votes).toHaveLength(3);
    expect(await rig.judgements(user)).toBe(2);
  });

  it('judges cast no second vote on a turn whose fact comes again', async () => {
    const said = `The train leaves at nine, ${newId()}.`;
    let votes = 0;
    rig.grade = (prompt) => {
      if (prompt.includes(said)) votes += 1;
      return '\\boxed{+1}';
    };
    await rig.judge();
    const talk = await rig.turn([{ text: said }]);
    await rig.untilJudged(talk);
    await rig.stopJudges();
    // A new consumer is given every fact for the first time, so that only the queue's records keep votes from being cast.
    await rig.admin.jsm.consumers.delete('TURNS', 'judge_turnContinued');
    await rig.judge();
    await until(() => haveSettledAll(rig.admin, 'TURNS', ['judge_turnContinued']));
    expect(votes).toBe(3);
    expect(await rig.judgements(talk.user)).toBe(1);
  });

  it('judges judge again what the queue remembers as judged and the log does not', async () => {
    await rig.judge();
    const talk = await rig.turn([{ text: neutral }]);
    await rig.untilJudged(talk);
    await rig.stopJudges();
    await rig.admin.jsm.streams.purge('TURNS', { filter: `backtalk.turn.judged.>` });
    await rig.admin.jsm.consumers.delete('TURNS', 'judge_turnContinued');
    await rig.judge();
    expect((await rig.untilJudged(talk)).votes).toHaveLength(3);
    // Every turn of the log is judged again, and none of them may take a place at the engine from the tests that follow.
    await until(() => haveSettledAll(rig.admin, 'TURNS', ['judge_turnContinued']));
  });

  it('judges give a turn up that can no longer be read', async () => {
    rig.engine.settings.faults = { busy: true };
    const judge = await rig.judge();
    const { turn, user } = await rig.turn([{ text: neutral }]);
    await until(async () => (await rig.metric(judge, 'turns_in_flight')) === 1);
    await rig.admin.jsm.streams.purge('TURNS', { filter: `backtalk.turn.opened.${tenant}.${user}.${turn}` });
    rig.engine.settings.faults = {};
    const letter = await until(async () =>
      (await deadLetters(rig.admin).list({ service: 'judge' })).find(({ fact }) => fact.subject.includes(turn)),
    );
    expect(letter.reason).toBe('turn_unreadable');
    expect(await rig.judgements(user)).toBe(0);
  });

  it('judges leave no word of a turn in Valkey, and yet keep its hints', async () => {
    const word = 'zqxcanaryvwk';
    rig.grade = () => `[HINT_START]Answer in one short ${word}.[HINT_END] \\boxed{-1}`;
    await rig.judge();
    const talk = await rig.turn([{ text: `Too long! Just one ${word}, please.` }]);
    const judged = await rig.untilJudged(talk);
    expect(judged.hint).toContain(word);
    expect(judged.votes.map(({ hint }) => hint)).toEqual(Array(3).fill(`Answer in one short ${word}.`));
    const text = await rig.valkeyText();
    expect(text).toContain(talk.turn);
    expect(text).not.toContain(word);
  });

  it('a turn on which the connections of two engines were lost is judged without its votes, and sent to no third engine', async () => {
    const said = `The train leaves at nine, ${newId()}.`;
    const engines = await Promise.all([startFakeEngine(), startFakeEngine(), startFakeEngine()]);
    const died = new Set<number>();
    for (const [at, { settings }] of engines.entries())
      settings.heard = (body) => {
        if (!JSON.stringify(body).includes(said)) return;
        died.add(at);
        throw new RangeError('the engine ends');
      };
    const engineUrls = engines.map(({ url }) => url);
    const one = { engineUrls, votes: 1, voteConcurrency: 1 };
    // Two judges: what one has seen, the other knows.
    const judges = await Promise.all([rig.judge(one), rig.judge(one)]);
    const talk = await rig.turn([{ text: said }]);
    expect((await rig.untilJudged(talk)).votes).toMatchObject([{ valid: false, reason: 'given_up' }]);
    expect(died.size).toBe(2);
    const givenUp = await Promise.all(judges.map((judge) => rig.metric(judge, 'votes_cast_total{result="given_up"}')));
    expect(givenUp.reduce((sum, count) => sum + count, 0)).toBe(1);
    await Promise.all(engines.map((engine) => engine.stop()));
  });

  // The last: the long lock stays with Valkey and the broker.
  it('a judge that stops hands over at once what it was casting', async () => {
    rig.engine.settings.faults = { hang: true };
    // Nothing of what follows waits for a lock or a delivery to run out.
    const slow = { ackWaitMs: 120_000, voteWaitMs: 120_000 };
    const said = `The train leaves at nine, ${newId()}.`;
    let votes = 0;
    rig.engine.settings.heard = (body) => {
      if (JSON.stringify(body).includes(said)) votes += 1;
    };
    const first = await rig.judge(slow);
    const talk = await rig.turn([{ text: said }]);
    // A vote that no judge has begun would be begun by the second one, at an engine that hangs.
    await until(() => votes >= 3, { what: () => `A third vote after ${votes}, ${rig.warnings.text}` });
    await rig.judge(slow);
    rig.engine.settings.faults = {};
    await first.stop();
    expect((await rig.untilJudged(talk)).votes.map(({ valid }) => valid)).toEqual([true, true, true]);
    expect(await rig.judgements(talk.user)).toBe(1);
  });
});
