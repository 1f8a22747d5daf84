import { readFileSync, writeFileSync, chmodSync } from 'node:fs';
import { join } from 'node:path';
import { putFakeVersion } from '@backtalk/dialects/testing';
import { FactPublisher, folderBlobStore } from '@backtalk/kit';
import { until } from '@backtalk/kit/testing';
import { WeightsStaged_Stage, WeightsTrained } from '@backtalk/proto/facts';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { mixedTurns } from './audit.js';
import { audited } from './audited.js';
import { breakEngine, engineCounts, metric } from './controls.js';
import { startCrowd } from './crowd.js';
import { LogBook } from './fact-log.js';
import { settleLearning } from './learning-switch.js';
import { startTestMachine, type TestMachine } from './machine.js';
import { ask, rowOf } from './talk.js';

const swaps = 20;
const clients = 30;
const seed = 20;

let machine: TestMachine;
let book: LogBook;

beforeAll(async () => {
  machine = await startTestMachine({
    engine: 'stand-in',
    training: 'stand-in',
    pace: { tokenMs: 60, answerTokens: 25 },
    environment: {
      trainer: { BACKTALK_RECIPE_SET: 'effective=2,effectiveMin=2' },
      // As fast as the talk: what is judged late is stale, and stale turns make no versions.
      judge: { BACKTALK_JUDGE_VOTES: '1', BACKTALK_JUDGE_VOTE_CONCURRENCY: '32', BACKTALK_JUDGE_TURNS_IN_FLIGHT: '64' },
    },
  });
  book = await LogBook.open(machine);
});

afterAll(async () => {
  await book?.close();
  await machine?.stop();
});

it(`${String(swaps)} swaps while ${String(clients)} clients stream: none failed, none cut, each answer by one version`, async () => {
  const crowd = startCrowd({ gateway: machine.gateway, seed, clients, streams: 1 });
  const versionAt = async () => Number((await book.stable()).replace('backtalk-v', ''));
  await until(async () => (await versionAt()) >= swaps, { what: 'The last swap', timeoutMs: 200_000, everyMs: 200 });
  const ledger = await crowd.stop();
  expect(ledger.filter(({ finished, error, status }) => !finished || error !== '' || status !== 200)).toEqual([]);
  const versions = new Set(ledger.map(({ weights }) => weights));
  expect(versions.size).toBeGreaterThan(swaps / 4);
  expect(await audited(book, ledger)).toEqual([]);
  expect(mixedTurns(ledger, await book.read())).toEqual([]);
});

it('an engine that names other weights in its last frame is found out, and its answer is never trained on', async () => {
  await breakEngine(machine.engine, { models: { last: 'backtalk-v901' } });
  const lied = await ask(machine.gateway, { messages: [{ role: 'user', content: 'Who answers?' }] });
  await breakEngine(machine.engine, {});
  const fact = await until(() => book.reader.last('turnCompleted', { turn: lied.turn }), { what: 'The answer’s fact' });
  expect(fact.message).toMatchObject({
    weightsVersion: lied.weights,
    weightsVersionAtEnd: 'backtalk-v901',
    trainable: false,
    untrainableReasons: ['version_changed'],
  });
  expect(mixedTurns([rowOf('test', lied)], await book.read())).toEqual([lied.turn]);
});

/** A version that was sound when it was signed off, and one byte of which is another now. */
async function trainFlipped(version: string): Promise<void> {
  const blobs = folderBlobStore(machine.data.blobs);
  const parent = await book.stable();
  const { manifest, manifestDigest } = await putFakeVersion({ blobs, version, parent });
  const digest = manifest.adapter.find(({ name }) => name.endsWith('.safetensors'))?.digest ?? '';
  const file = join(machine.data.blobs, digest.slice(0, 2), digest);
  const bytes = readFileSync(file);
  bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1;
  chmodSync(file, 0o600);
  writeFileSync(file, bytes);
  const last = await book.reader.last('weightsTrained', { policy: 'backtalk' });
  const broker = await machine.broker('trainer');
  const fact = WeightsTrained.fromPartial({ policy: 'backtalk', version, parent, manifestDigest });
  await new FactPublisher(broker).publish('weightsTrained', fact, { expectSequence: last?.sequence ?? 0 });
  await broker.close();
}

it('one flipped byte is refused, never reaches an engine, and the old version goes on', async () => {
  await settleLearning(machine, book, 60_000);
  const stable = await book.stable();
  const flipped = 'backtalk-v900';
  const burnedBefore = await metric(machine, 'publisher', 'backtalk_publisher_versions_total', 'burned');
  await trainFlipped(flipped);
  const fact = await until(
    async () => {
      const { staged } = await book.read();
      return staged.find(
        ({ message }) => message.version === flipped && message.stage === WeightsStaged_Stage.STAGE_BURNED,
      );
    },
    { what: 'The refusal', timeoutMs: 60_000, everyMs: 100 },
  );
  expect(fact.message.why).toMatch(/corrupt|digest/);
  expect(await book.stable()).toBe(stable);
  expect((await ask(machine.gateway, { messages: [{ role: 'user', content: 'Who answers?' }] })).weights).toBe(stable);
  expect((await engineCounts(machine.engine)).loads).not.toContain(flipped);
  expect(await metric(machine, 'publisher', 'backtalk_publisher_versions_total', 'burned')).toBe(burnedBefore + 1);
});
