import { askedRebuild, folderBlobStore, rebuildProgress } from '@backtalk/kit';
import { grpcClient } from '@backtalk/kit/grpc';
import { freePort, until } from '@backtalk/kit/testing';
import { PublisherControlServiceDefinition } from '@backtalk/proto/control';
import type { TrainRequest } from '@backtalk/proto/training';
import { WeightsManifest } from '@backtalk/proto/weights';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { mixedTurns } from './audit.js';
import { audited } from './audited.js';
import { metric } from './controls.js';
import { startCrowd } from './crowd.js';
import { LogBook } from './fact-log.js';
import { setPaused, settleLearning } from './learning-switch.js';
import type { LedgerRow } from './ledger.js';
import { comparableTokens, logprobGap } from './logprob-gap.js';
import { startTestMachine, type TestMachine } from './machine.js';
import { secretsIn, secretsOf } from './secrets.js';
import { ask, rowOf, type Heard, type Question } from './talk.js';
import { TrainingTap } from './training-tap.js';

const swaps = 2;
const streams = 4;
const seed = 3;
const comparedTokens = 250;
const minute = 60_000;

const tap = new TrainingTap();
const ledger: LedgerRow[] = [];
let machine: TestMachine;
let book: LogBook;
/** The step whose worker is killed. */
let broken: TrainRequest | undefined;

beforeAll(async () => {
  const tapPort = await freePort();
  await tap.start(tapPort);
  machine = await startTestMachine({
    engine: 'builtin',
    training: 'real',
    environment: {
      'training-worker': { BACKTALK_NICE: '0' },
      trainer: {
        BACKTALK_TRAINING_WORKER: `127.0.0.1:${String(tapPort)}`,
        BACKTALK_RECIPE_SET:
          'effective=2,effectiveMin=2,anchorsPerEffective=0,answerTokensMax=16,rewardVersions=2,distillVersions=2,optimizerSteps=2',
      },
    },
  });
  tap.lead(`127.0.0.1:${String(machine.ports.grpc.trainingWorker)}`, machine.wire);
  book = await LogBook.open(machine);
}, 5 * minute);

afterAll(async () => {
  await book?.close();
  await machine?.stop();
  await tap.stop();
});

const numberOf = (version: string) => Number(version.replace('backtalk-v', ''));

/** One request outside the crowds, which stands in the ledger as theirs do. */
async function say(question: Question): Promise<Heard> {
  const heard = await ask(machine.gateway, question);
  ledger.push(rowOf('test', heard));
  return heard;
}

/** Clients correct every answer until a condition holds. */
async function correctUntil(holds: () => Promise<unknown>, clients: number): Promise<void> {
  const { gateway } = machine;
  const crowd = startCrowd({ gateway, seed: seed + ledger.length, clients, corrects: 1, streams: 1, maxTokens: 16 });
  try {
    await holds();
  } finally {
    ledger.push(...(await crowd.stop()));
  }
}

/** Answers of trained versions, until there are tokens enough to compare. */
async function talkUntilTokens(count: number): Promise<void> {
  while (comparableTokens(await book.read()) < count) {
    const questions = Array.from({ length: streams }, (_, at) => `Tell me about island number ${String(at)}.`);
    const asked = questions.map((content) => ({ messages: [{ role: 'user' as const, content }], maxTokens: 32 }));
    await Promise.all(asked.map(say));
  }
}

describe('the loop with the laptop model', () => {
  it(
    `swaps ${String(swaps)} times while ${String(streams)} clients stream, and fails or cuts nobody`,
    async () => {
      const lastServes = async () => numberOf(await book.stable()) >= swaps;
      const swapped = () => until(lastServes, { what: 'The last swap', timeoutMs: 9 * minute, everyMs: 250 });
      await correctUntil(swapped, streams);
      await settleLearning(machine, book, 4 * minute);
      expect(ledger.filter(({ finished, error }) => !finished || error !== '')).toEqual([]);
      const log = await book.read();
      const { completed, batches, trained } = log;
      expect(mixedTurns(ledger, log)).toEqual([]);
      for (const { message, timeMs } of trained.slice(0, swaps)) {
        const closedMs = batches.find((batch) => batch.message.number === message.batch)?.timeMs ?? Infinity;
        const meanwhile = completed.filter((turn) => turn.timeMs > closedMs && turn.timeMs < timeMs);
        expect(meanwhile.length, `answers while ${message.version} was trained`).toBeGreaterThan(0);
      }
    },
    10 * minute,
  );

  it(
    'makes each version of other weights, and serves those that are asked for by name',
    async () => {
      const { trained } = await book.read();
      const blobs = folderBlobStore(machine.data.blobs);
      const manifests = await Promise.all(trained.map(({ message }) => blobs.get(message.manifestDigest)));
      const digests = manifests.map((bytes) => WeightsManifest.decode(bytes).adapter[0]?.digest);
      expect(new Set(digests).size).toBe(trained.length);
      const stable = await book.stable();
      const question = { messages: [{ role: 'user' as const, content: 'What is a glacier?' }], maxTokens: 8 };
      const before = await say({ ...question, model: 'backtalk-v0' });
      const now = await say({ ...question, model: stable });
      expect([before.weights, now.weights]).toEqual(['backtalk-v0', stable]);
      const fact = await book.reader.last('turnCompleted', { turn: now.turn });
      expect(fact?.message.untrainableReasons).toContain('pinned_version');
    },
    2 * minute,
  );

  it(
    'computes the same logprobs in engine and training worker, with an adapter on',
    async () => {
      await talkUntilTokens(comparedTokens);
      const { tokens, meanAbs } = await logprobGap(machine, tap.worker, await book.read(), comparedTokens);
      expect(tokens).toBeGreaterThanOrEqual(comparedTokens);
      expect(meanAbs).toBeLessThanOrEqual(1e-4);
    },
    5 * minute,
  );

  it(
    'goes back to the version before without loading it',
    async () => {
      const burned = await book.stable();
      const loads = () => metric(machine, 'loader', 'backtalk_loader_prepares_total', 'loaded');
      const before = await loads();
      const address = `127.0.0.1:${String(machine.ports.grpc.publisher)}`;
      const publisher = grpcClient(PublisherControlServiceDefinition, address, { caller: 'cli', wire: machine.wire });
      const request = { policy: 'backtalk', why: 'a test asked' };
      const { from, to } = await publisher.rollback(request, { deadlineMs: 20_000 });
      publisher.close();
      expect(from).toBe(burned);
      const question = { messages: [{ role: 'user' as const, content: 'Who answers now?' }], maxTokens: 4 };
      expect((await say(question)).weights).toBe(to);
      expect(await loads()).toBe(before);
    },
    2 * minute,
  );

  it(
    'learns on from the version that was gone back to, and takes a step again whose worker was killed',
    async () => {
      const parent = await book.stable();
      const before = machine.pid('training-worker');
      await setPaused(machine, false);
      await correctUntil(async () => {
        await tap.untilPhase('forward_backward');
        machine.kill('training-worker');
      }, 2);
      broken = tap.requests.at(-1);
      await setPaused(machine, true);
      await machine.serves('training-worker', before);
      const fact = await until(
        async () => (await book.read()).trained.find(({ message }) => message.version === broken?.version),
        { what: 'The version of the broken step', timeoutMs: 4 * minute, everyMs: 250 },
      );
      expect(fact.message.parent).toBe(parent);
      await settleLearning(machine, book, 4 * minute);
      expect(tap.requests.filter(({ call }) => call === broken?.call).length).toBeGreaterThan(1);
      expect(await audited(book, ledger)).toEqual([]);
    },
    8 * minute,
  );

  it(
    'a version whose step was broken off is made again from the log with its parent, whose files were swept, byte for byte',
    async () => {
      const blobs = folderBlobStore(machine.data.blobs);
      const { trained } = await book.read();
      const child = trained.find(({ message }) => message.version === broken?.version)?.message;
      const parent = trained.find(({ message }) => message.version === child?.parent)?.message;
      if (child === undefined || parent === undefined) expect.unreachable();
      for (const { manifestDigest } of [parent, child]) {
        const { adapter, trainingState } = WeightsManifest.decode(await blobs.get(manifestDigest));
        for (const { digest } of [...adapter, ...trainingState]) await blobs.delete(digest);
      }
      const broker = await machine.broker();
      const asked = { id: 'again', version: child.version, recipe: '', judged: '' };
      await askedRebuild(broker, 'backtalk').put(asked);
      const ended = async () => {
        const progress = (await rebuildProgress(broker, 'backtalk').get())?.value;
        return progress?.state === 'running' ? undefined : progress;
      };
      const told = await until(ended, { what: 'The end of the rebuild', timeoutMs: 6 * minute, everyMs: 250 });
      await broker.close();
      expect(told).toMatchObject({ version: asked.version, asked: asked.id, state: 'equal', done: 2, detail: '' });
    },
    8 * minute,
  );

  it('no secret stands in what engine, training worker and services wrote', () => {
    const secrets = secretsOf(machine);
    expect([...secrets.keys()]).toContain('engine BACKTALK_ENGINE_JUDGE_KEY');
    expect(machine.log('engine').length).toBeGreaterThan(0);
    expect(machine.log('training-worker').length).toBeGreaterThan(0);
    expect(secretsIn(machine.logs(), secrets)).toEqual([]);
  });
});
