import { FactPublisher, folderBlobStore, type Broker } from '@backtalk/kit';
import { startNats, TemporaryDirectory, type TestNats } from '@backtalk/kit/testing';
import { BatchClosed, FeedbackGiven, TurnJudged, TurnOpened } from '@backtalk/proto/facts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { LogTools } from './delete-rows.js';
import { createOutput } from './output.js';
import { payloadsOf, policyLogs, saidOfOthers, turnsOf } from './person-facts.js';

const directory = new TemporaryDirectory('person-facts');
const blobs = folderBlobStore(directory.path);
const ada = { tenant: 't', user: 'ada' };
const ben = { tenant: 't', user: 'ben' };
let nats: TestNats;
let tools: LogTools;

const publisherOf = async (service: 'gateway' | 'judge' | 'trainer') =>
  new FactPublisher(await nats.connect(service), { blobs });

beforeAll(async () => {
  nats = await startNats();
  const broker: Broker = await nats.connect('cli');
  tools = { broker, blobs, output: createOutput(true), signal: new AbortController().signal };
});

afterAll(async () => {
  await nats.stop();
  directory.remove();
});

describe('what the log holds of a person', () => {
  it('a person’s turns are told from those of others and of another tenant, and policies by what was judged', async () => {
    const gateway = await publisherOf('gateway');
    for (const [turn, owner] of [
      ['a', ada],
      ['b', ben],
      ['n', { tenant: 'u', user: 'ada' }],
    ] as const)
      await gateway.publish('turnOpened', TurnOpened.fromPartial({ turn, ...owner }));
    await (
      await publisherOf('judge')
    ).publish('turnJudged', TurnJudged.fromPartial({ turn: 'a', ...ada, policy: 'p' }));
    const { turns, rows, policies } = await turnsOf(tools, ada);
    expect([turns, rows.length, [...policies]]).toEqual([1, 2, ['p']]);
  });

  it('a person’s words on others’ answers are theirs, also where another judgement repeats them', async () => {
    const feedback = { turn: 'b', ...ben, policy: 'p', digest: 'd1', giver: 'ada', correction: 'Rhyme.' };
    await (await publisherOf('gateway')).publish('feedbackGiven', FeedbackGiven.fromPartial(feedback));
    const judge = await publisherOf('judge');
    const evidence = [{ name: 'feedback', verdict: -1, detail: 'd1' }];
    const judged = { turn: 'b', ...ben, policy: 'p' };
    await judge.publish('turnJudged', TurnJudged.fromPartial({ ...judged, revision: 0 }));
    await judge.publish('turnJudged', TurnJudged.fromPartial({ ...judged, revision: 1, giver: 'ada', evidence }));
    // Without words of its own: the hint is the one from before.
    await judge.publish('turnJudged', TurnJudged.fromPartial({ ...judged, revision: 2, hint: 'Rhyme.', evidence }));
    const { rows, said } = await saidOfOthers(tools, ada);
    expect([...said]).toEqual(['b 1', 'b 2']);
    expect(rows).toHaveLength(3);
    expect((await saidOfOthers(tools, ben)).rows).toEqual([]);
  });

  it('facts of a policy that are too large for the log are found with what lies beside it', async () => {
    const lessons = [{ text: 'x'.repeat(1_000_000), scopeTenant: 't', scopeUser: 'ada' }];
    const trainer = await publisherOf('trainer');
    const { sequence } = await trainer.publish('batchClosed', BatchClosed.fromPartial({ policy: 'p', lessons }), {
      expectSequence: 0,
    });
    const small = BatchClosed.fromPartial({ policy: 'q' });
    await trainer.publish('batchClosed', small, { expectSequence: 0 });
    expect([...(await policyLogs(tools)).keys()]).toEqual(['p', 'q']);
    expect([...(await policyLogs(tools, 'q')).keys()]).toEqual(['q']);
    const beside = await payloadsOf(tools, 'p');
    expect(beside).toMatchObject([{ name: 'batchClosed', sequence }]);
    expect(await blobs.has(beside[0]?.payload ?? '')).toBe(true);
    expect(await payloadsOf(tools, 'q')).toEqual([]);
  });
});
