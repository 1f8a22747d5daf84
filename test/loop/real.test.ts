import { folderBlobStore, grpcClient, kvBucket } from '@backtalk/kit';
import { freePort, until } from '@backtalk/kit/testing';
import { PublisherControlServiceDefinition } from '@backtalk/proto/control';
import { WeightsManifest } from '@backtalk/proto/weights';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { audited } from './audited.js';
import { metric } from './controls.js';
import { startCrowd } from './crowd.js';
import { LogBook } from './fact-log.js';
import type { LedgerRow } from './ledger.js';
import { logprobGap } from './logprob-gap.js';
import { startTestMachine, type TestMachine } from './machine.js';
import { ask } from './talk.js';
import { TrainingTap } from './training-tap.js';

const swaps = 5;
const streams = 8;
const seed = 3;
const minute = 60_000;

const tap = new TrainingTap();
const ledger: LedgerRow[] = [];
let machine: TestMachine;
let book: LogBook;

beforeAll(async () => {
  const tapPort = await freePort();
  await tap.start(tapPort);
  machine = await startTestMachine({
    ...{ engine: 'builtin', training: 'real' },
    environment: {
      trainer: {
        BACKTALK_TRAINING_WORKER: `127.0.0.1:${String(tapPort)}`,
        BACKTALK_BATCH_SIZE: '4',
        BACKTALK_BATCH_ANCHORS: '0',
        BACKTALK_TRAIN_ANSWER_TOKENS: '16',
      },
    },
  });
  tap.lead(`127.0.0.1:${String(machine.ports.grpc.trainingWorker)}`);
  book = await LogBook.open(machine);
}, 3 * minute);

afterAll(async () => {
  await book?.close();
  await machine?.stop();
  await tap.stop();
});

const numberOf = (version: string) => Number(version.replace('backtalk-v', ''));
const versionServes = (number: number) =>
  until(async () => numberOf(await book.stable()) >= number, {
    ...{ what: `backtalk-v${String(number)} serves`, timeoutMs: 3 * minute, everyMs: 250 },
  });

/** Corrects until a condition holds; every request must go well. */
async function correctUntil(holds: () => Promise<unknown>, clients: number): Promise<void> {
  const { gateway } = machine;
  const crowd = startCrowd({ gateway, seed: seed + ledger.length, clients, corrects: 1, streams: 1, maxTokens: 20 });
  try {
    await holds();
  } finally {
    ledger.push(...(await crowd.stop()));
  }
}

async function setPaused(paused: boolean): Promise<void> {
  const broker = await machine.broker('cli');
  const codec = { toJSON: (value: unknown) => value, fromJSON: (json: unknown) => json };
  await kvBucket(broker, 'settings', codec).put('backtalk.learning', { paused });
  await broker.close();
}

describe('the loop with the laptop model', () => {
  it(
    `swaps ${String(swaps)} times while ${String(streams)} clients stream, and fails or cuts nobody`,
    async () => {
      await correctUntil(() => versionServes(swaps), streams);
      expect(ledger.filter(({ finished, error }) => !finished || error !== '')).toEqual([]);
      const { completed, batches, trained } = await book.read();
      expect(completed.filter(({ message }) => message.weightsVersion !== message.weightsVersionAtEnd)).toEqual([]);
      for (const { message, timeMs } of trained) {
        const closed = batches.find((batch) => batch.message.number === message.batch)?.timeMs ?? Infinity;
        const meanwhile = completed.filter((turn) => turn.timeMs > closed && turn.timeMs < timeMs);
        expect(meanwhile.length, `answers while ${message.version} was trained`).toBeGreaterThan(0);
      }
    },
    4 * minute,
  );

  it('makes each version of other weights, which answer otherwise, also when asked for by name', async () => {
    const { trained } = await book.read();
    const blobs = folderBlobStore(machine.data.blobs);
    const manifests = await Promise.all(trained.map(({ message }) => blobs.get(message.manifestDigest)));
    const digests = manifests.map((bytes) => WeightsManifest.decode(bytes).adapter[0]?.digest);
    expect(new Set(digests).size).toBe(trained.length);
    const stable = await book.stable();
    const question = { messages: [{ role: 'user' as const, content: 'What is a glacier?' }], maxTokens: 24 };
    const before = await ask(machine.gateway, { ...question, model: 'backtalk-v0', seed: 1 });
    const now = await ask(machine.gateway, { ...question, model: stable, seed: 1 });
    expect([before.weights, now.weights]).toEqual(['backtalk-v0', stable]);
    const fact = await book.reader.last('turnCompleted', { turn: now.turn });
    expect(fact?.message.untrainableReasons).toContain('pinned_version');
  });

  it(
    'computes the same logprobs in engine and training worker, with an adapter on',
    async () => {
      const { tokens, meanAbs } = await logprobGap(machine, tap.worker, await book.read(), 1_000);
      expect(tokens).toBeGreaterThanOrEqual(1_000);
      expect(meanAbs).toBeLessThanOrEqual(1e-4);
    },
    2 * minute,
  );

  it(
    'goes back to the version before without loading it, and learns on from there',
    async () => {
      await setPaused(true);
      const undecided = async () => {
        const { batches, trained, staged } = await book.read();
        const steps = batches.filter(({ message }) => message.samples.length > 0).length;
        return (
          steps !== trained.length ||
          trained.some(({ message }) => !staged.some((fact) => fact.message.version === message.version))
        );
      };
      await until(async () => !(await undecided()), {
        what: 'The last step is decided',
        timeoutMs: minute,
        everyMs: 250,
      });
      const burned = await book.stable();
      await until(async () => (await book.stable()) === burned, { what: 'A steady version' });
      const loads = () => metric(machine, 'loader', 'backtalk_loader_prepares_total', 'loaded');
      const before = await loads();
      const publisher = grpcClient(
        PublisherControlServiceDefinition,
        `127.0.0.1:${String(machine.ports.grpc.publisher)}`,
        { caller: 'test' },
      );
      const { from, to } = await publisher.rollback(
        { policy: 'backtalk', why: 'a test asked' },
        { deadlineMs: 10_000 },
      );
      publisher.close();
      expect(from).toBe(burned);
      const answer = await ask(machine.gateway, {
        messages: [{ role: 'user', content: 'Who answers now?' }],
        maxTokens: 4,
      });
      expect(answer.weights).toBe(to);
      expect(await loads()).toBe(before);
      await setPaused(false);
      const next = async () => {
        const { batches } = await book.read();
        return batches.find(
          ({ message }) => message.samples.length > 0 && numberOf(message.version) > numberOf(burned),
        );
      };
      await correctUntil(() => until(next, { what: 'The next batch', timeoutMs: minute, everyMs: 250 }), 4);
      expect((await next())?.message.parent).toBe(to);
    },
    3 * minute,
  );

  it(
    'takes a step again when its worker was killed, and makes the same version byte for byte',
    async () => {
      await correctUntil(() => tap.untilPhase('forward_backward'), 4);
      const before = machine.pid('training-worker');
      machine.kill('training-worker');
      const request = tap.requests.at(-1);
      if (request === undefined) expect.unreachable();
      await machine.serves('training-worker', before);
      const fact = await until(
        async () => (await book.read()).trained.find(({ message }) => message.version === request.version),
        { what: 'The version of the broken step', timeoutMs: 2 * minute, everyMs: 250 },
      );
      const manifest = WeightsManifest.decode(
        await folderBlobStore(machine.data.blobs).get(fact.message.manifestDigest),
      );
      await setPaused(true);
      await until(() => tap.phase === '', { what: 'The worker is free', timeoutMs: minute });
      const again = await tap.again(request);
      expect(again.adapter).toEqual(manifest.adapter);
      expect(again.trainingState).toEqual(manifest.trainingState);
      expect(await audited(book, ledger)).toEqual([]);
    },
    4 * minute,
  );
});
