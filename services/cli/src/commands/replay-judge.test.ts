import { FactPublisher, FactReader, jsonCodec, kvBucket, type Broker } from '@backtalk/kit';
import { startNats, TemporaryDirectory, until, type TestNats } from '@backtalk/kit/testing';
import { BatchClosed, TurnJudged, WeightsTrained, type JudgementAsked } from '@backtalk/proto/facts';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { z } from 'zod';
import { printCommand, runCommand } from '../testing/cluster-command.js';

const directory = new TemporaryDirectory('replay-judge');
const anything = jsonCodec(z.record(z.string(), z.unknown()));
const person = { tenant: 'acme', user: 'ann' };
let nats: TestNats;
let trainer: Broker;

const sample = (turn: string, more: object = {}) => ({ ...person, turn, revision: 0, question: 0, ...more });
/** By number: v3 takes a step of v2 once more. */
const batches = [
  [sample('earlier')],
  [sample('one'), sample('two'), sample('thumb', { revision: 1 }), sample('asked', { question: 1 })],
  [sample('two'), sample('three'), sample('attempt', { attempt: { reward: 1 } })],
  [sample('later')],
];

beforeAll(async () => {
  nats = await startNats();
  trainer = await nats.connect('trainer');
  const facts = new FactPublisher(trainer);
  const before = { batchClosed: 0, weightsTrained: 0 };
  for (const [at, samples] of batches.entries()) {
    const [number, version, parent] = [at + 1, `backtalk-v${String(at + 1)}`, `backtalk-v${String(at)}`];
    const closed = BatchClosed.fromPartial({ policy: 'backtalk', number, version, parent, samples });
    const made = WeightsTrained.fromPartial({ policy: 'backtalk', version, parent, batch: number });
    const expected = (name: keyof typeof before) => ({ expectSequence: before[name] });
    before.batchClosed = (await facts.publish('batchClosed', closed, expected('batchClosed'))).sequence;
    before.weightsTrained = (await facts.publish('weightsTrained', made, expected('weightsTrained'))).sequence;
  }
});

afterAll(async () => {
  await nats.stop();
  directory.remove();
});

const place = () => ({ nats, user: 'cli' as const, folder: directory.path });
const words = ['replay', '--from', 'backtalk-v2', '--to', 'backtalk-v3', '--judge'];

/** While a judge answers what it is asked, all but that of one turn, and a trainer what it is asked then. */
async function answering<T>(
  act: () => Promise<T>,
  but = '',
  state = 'different',
): Promise<{ result: T; asked: JudgementAsked[]; wish: unknown }> {
  let wish: unknown;
  const stop = await kvBucket(trainer, 'settings', anything).watch('backtalk.rebuild', (change) => {
    if (change.kind !== 'put') return;
    wish = change.value;
    const { id: asked, version } = change.value;
    const rejudged = { turns: 2, verdicts: 1, hints: 0, refused: 0 };
    const replayed = [
      { version: 'backtalk-v2', differing: ['adapter_model.safetensors'], measurements: {}, rejudged },
      { version: 'backtalk-v3', differing: ['adapter_model.safetensors'], measurements: {} },
    ];
    const told = { asked, version, state, detail: 'x.', done: 2, of: 2, replayed };
    void kvBucket(trainer, 'tries', anything).put('trainer.rebuild.backtalk', told);
  });
  const asked: JudgementAsked[] = [];
  const ended = new AbortController();
  const judging = answerAll(asked, but, ended.signal);
  const result = await act().finally(() => {
    ended.abort();
    stop();
  });
  await judging;
  return { result, asked, wish };
}

async function answerAll(asked: JudgementAsked[], but: string, signal: AbortSignal): Promise<void> {
  const judge = new FactPublisher(await nats.connect('judge'));
  const reader = new FactReader(await nats.connect('admin'));
  let next = 0;
  const answer = async () => {
    for await (const { message, sequence } of reader.read(['judgementAsked'], { from: next })) {
      next = sequence + 1;
      asked.push(message);
      if (message.turn === but) continue;
      const judged = TurnJudged.fromPartial({ ...message, verdict: 1, judgeModel: 'reader' });
      await judge.publish('turnRejudged', { ...message, judged, refused: '' });
    }
    return signal.aborted;
  };
  await until(answer, { what: 'The end of the command', timeoutMs: 60_000, everyMs: 50 });
}

it('the judge is asked once about each turn that it judged, and the trainer with what came of that', async () => {
  const { result, asked, wish } = await answering(() => runCommand(place(), words));
  expect(asked.map(({ turn }) => turn).sort()).toEqual(['one', 'three', 'two']);
  const [id] = new Set(asked.map((one) => one.asked));
  expect(wish).toMatchObject({ from: 'backtalk-v2', version: 'backtalk-v3', recipe: '', judged: id });
  expect(result).toMatchObject({ status: 0 });
  expect(result.values).toMatchObject([
    {
      judges: ['reader'],
      state: 'different',
      versions: [
        { version: 'backtalk-v2', same: false, rejudged: { turns: 2, verdicts: 1, hints: 0, refused: 0 } },
        { version: 'backtalk-v3', same: false },
      ],
    },
  ]);
});

it('what another judge changes stands beside each version', async () => {
  const { result, asked } = await answering(() => printCommand(place(), [...words, '--recipe', 'learningRate=5e-4']));
  expect(asked.length).toBeGreaterThan(3);
  expect(result.stdout).toContain('as it comes out with learningRate=5e-4 and the judgements of reader.');
  expect(result.stdout).toMatch(/backtalk-v2\s+no\s+1 of 2\s+0 of 2\s+0 of 2/);
});

it('a judge that is late is named, with how far it has come, and the trainer is asked nothing', async () => {
  const { result, asked, wish } = await answering(() => runCommand(place(), [...words, '--wait', '2s']), 'three');
  expect(result).toMatchObject({ status: 1, values: [{ error: { code: 'rejudging_pending' } }] });
  expect(JSON.stringify(result.values)).toContain('2 of 3 turns');
  expect(JSON.stringify(result.values)).toContain(`--judge ${asked.at(-1)?.asked ?? 'nothing'} takes it up`);
  // What was asked before is there still.
  expect(wish).not.toMatchObject({ judged: asked.at(-1)?.asked });
});

it('an asking that was broken off is taken up: no turn is judged a second time', async () => {
  const early = await answering(() => runCommand(place(), [...words, '--wait', '2s']), 'three');
  const id = early.asked.at(-1)?.asked ?? '';
  const count = early.asked.length;
  const { result, asked, wish } = await answering(() => runCommand(place(), [...words, id]));
  expect(result).toMatchObject({ status: 0, values: [{ asked: id, state: 'different' }] });
  expect(asked).toHaveLength(count);
  expect(wish).toMatchObject({ judged: id });
  const refused = await runCommand(place(), [...words, 'no asking']);
  expect(refused).toMatchObject({ status: 2, values: [{ error: { code: 'bad_argument' } }] });
});

it('what the trainer refuses says how to use the judgements once more', async () => {
  const ask = () => runCommand(place(), [...words, '--recipe', 'effective=3']);
  const { result, asked } = await answering(ask, '', 'failed');
  expect(result).toMatchObject({ status: 1, values: [{ error: { code: 'replay_failed' } }] });
  expect(JSON.stringify(result.values)).toContain(`--judge ${asked.at(-1)?.asked ?? 'nothing'}.`);
});
