import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { FactPublisher, folderBlobStore, jsonCodec, kvBucket, type Broker } from '@backtalk/kit';
import { startNats, TemporaryDirectory, type TestNats } from '@backtalk/kit/testing';
import { WeightsTrained } from '@backtalk/proto/facts';
import { Routes, WeightsManifest } from '@backtalk/proto/weights';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { z } from 'zod';
import { printCommand, runCommand } from '../testing/cluster-command.js';

const directory = new TemporaryDirectory('replay');
const environment = { BACKTALK_BLOB_STORE: `folder:${directory.join('blobs')}` };
const anything = jsonCodec(z.record(z.string(), z.unknown()));
let nats: TestNats;
let trainer: Broker;

beforeAll(async () => {
  nats = await startNats();
  trainer = await nats.connect('trainer');
  const facts = new FactPublisher(trainer);
  let before = 0;
  for (const number of [1, 2]) {
    const [version, parent] = [`backtalk-v${String(number)}`, `backtalk-v${String(number - 1)}`];
    const report = { measurements: { loss_opd: number, kl_step: 4 }, samples: [] };
    const made = WeightsTrained.fromPartial({ policy: 'backtalk', version, parent, batch: number, report });
    before = (await facts.publish('weightsTrained', made, { expectSequence: before })).sequence;
  }
  const publisher = await nats.connect('publisher');
  await kvBucket(publisher, 'routes', Routes).put('backtalk', Routes.fromPartial({ stable: 'backtalk-v2' }));
});

afterAll(async () => {
  await nats.stop();
  directory.remove();
});

const place = () => ({ nats, user: 'cli' as const, folder: directory.path, environment });
const replay = (...words: string[]) => runCommand(place(), ['replay', ...words]);

/** A trainer that answers what is asked with `answer`. */
async function answering<T>(answer: object, act: () => Promise<T>): Promise<{ result: T; wish: unknown }> {
  let wish: unknown;
  const stop = await kvBucket(trainer, 'settings', anything).watch('backtalk.rebuild', (change) => {
    if (change.kind !== 'put' || change.value['from'] === undefined) return;
    wish = change.value;
    const { id: asked, version } = change.value;
    const told = { asked, version, done: 2, of: 2, detail: '', ...answer };
    void kvBucket(trainer, 'tries', anything).put('trainer.rebuild.backtalk', told);
  });
  const result = await act();
  stop();
  return { result, wish };
}

it('words that name no row of versions are refused, and a trainer that is away is said to be late', async () => {
  const error = (code: string, status: number) => ({ status, values: [{ error: { code } }] });
  expect(await replay('--from', 'nonsense')).toMatchObject(error('bad_argument', 2));
  expect(await replay('--from', 'backtalk-v1', '--to', 'other-v2')).toMatchObject(error('bad_argument', 2));
  expect(await replay('--from', 'backtalk-v7')).toMatchObject(error('nothing_found', 1));
  mkdirSync(directory.join('full'));
  writeFileSync(directory.join('full', 'file'), '');
  expect(await replay('--from', 'backtalk-v1', '--save', directory.join('full'))).toMatchObject(
    error('bad_argument', 2),
  );
  expect(await replay('--from', 'backtalk-v1', '--wait', '1s')).toMatchObject(error('replay_pending', 1));
});

it('what the trainer makes of it stands beside what was, and is saved as an adapter', async () => {
  const blobs = folderBlobStore(directory.join('blobs'));
  const adapter = await Promise.all(
    ['adapter_model.safetensors', 'adapter_config.json'].map(async (name) => {
      const bytes = Buffer.from('{}');
      return { name, digest: await blobs.put(bytes), bytes: bytes.byteLength };
    }),
  );
  const made = WeightsManifest.fromPartial({ policy: 'backtalk', version: 'backtalk-v2', adapter });
  const manifest = await blobs.put(WeightsManifest.encode(made).finish());
  const replayed = [
    { version: 'backtalk-v1', differing: [], measurements: { loss_opd: 1, kl_step: 4 } },
    {
      version: 'backtalk-v2',
      differing: ['adapter_model.safetensors'],
      measurements: { loss_opd: 0.5, kl_step: -0.001 },
    },
  ];
  const answer = { state: 'different', detail: 'backtalk-v2: adapter_model.safetensors', replayed, manifest };
  const words = ['--from', 'backtalk-v1', '--recipe', 'learningRate=5e-4'];
  const folder = directory.join('saved');
  const { result, wish } = await answering(answer, () => replay(...words, '--save', folder));
  expect(wish).toMatchObject({ from: 'backtalk-v1', version: 'backtalk-v2', recipe: 'learningRate=5e-4' });
  expect(result).toMatchObject({ status: 0, complaint: '' });
  expect(result.values).toEqual([
    {
      from: 'backtalk-v1',
      to: 'backtalk-v2',
      recipe: 'learningRate=5e-4',
      state: 'different',
      versions: [
        { version: 'backtalk-v1', same: true, then: { loss_opd: 1, kl_step: 4 }, now: { loss_opd: 1, kl_step: 4 } },
        {
          version: 'backtalk-v2',
          same: false,
          then: { loss_opd: 2, kl_step: 4 },
          now: { loss_opd: 0.5, kl_step: -0.001 },
        },
      ],
      folder,
    },
  ]);
  expect(existsSync(directory.join('saved', 'adapter_model.safetensors'))).toBe(true);
  const { result: printed } = await answering(answer, () => printCommand(place(), ['replay', ...words]));
  expect(printed.stdout).toMatch(/backtalk-v2\s+no\s+2\.00 → 0\.50\s+4\.00 → 0\.00/);
});

it('bytes that are others although nothing was changed are a failure, and so is what the trainer refuses', async () => {
  const replayed = [{ version: 'backtalk-v1', differing: ['optimizer.safetensors'], measurements: {} }];
  const words = ['--from', 'backtalk-v1', '--to', 'backtalk-v1'];
  const other = await answering({ state: 'different', detail: 'x', replayed }, () => replay(...words));
  expect(other.result.status).toBe(1);
  expect(other.result.values).toMatchObject([{ state: 'different' }, { error: { code: 'rebuild_differs' } }]);
  const refused = await answering({ state: 'failed', detail: 'effective has no part in a step.' }, () =>
    replay(...words),
  );
  expect(refused.result).toMatchObject({ status: 1, values: [{ error: { code: 'replay_failed' } }] });
  expect(refused.result.complaint + JSON.stringify(refused.result.values)).toContain('effective has no part');
});
