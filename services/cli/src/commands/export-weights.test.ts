import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { FactPublisher, folderBlobStore, inheritedEnvironment, kvBucket } from '@backtalk/kit';
import { repositoryRoot, startNats, TemporaryDirectory, until, type TestNats } from '@backtalk/kit/testing';
import { WeightsTrained } from '@backtalk/proto/facts';
import { Routes, WeightsManifest } from '@backtalk/proto/weights';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { runCommand, type Place } from '../testing/cluster-command.js';

const directory = new TemporaryDirectory('export-weights');
const blobs = folderBlobStore(directory.join('blobs'));
const policy = 'backtalk';
const config = JSON.stringify({ peft_type: 'LORA', base_model_name_or_path: 'base' });
let nats: TestNats;
let place: Place;
let trained = 0;

beforeAll(async () => {
  nats = await startNats();
  const environment = { BACKTALK_BLOB_STORE: `folder:${directory.join('blobs')}` };
  place = { nats, user: 'cli', folder: directory.path, environment };
  for (const number of [1, 2, 3]) await train(number);
  await answersWith(`${policy}-v2`);
});

afterAll(async () => {
  await nats.stop();
  directory.remove();
});

const weightsOf = (version: string) => `weights of ${version}`;

async function stored(name: string, text: string) {
  const bytes = Buffer.from(text);
  return { name, digest: await blobs.put(bytes), bytes: bytes.byteLength };
}

async function train(number: number): Promise<void> {
  const version = `${policy}-v${number}`;
  const adapter = [
    await stored('adapter_model.safetensors', weightsOf(version)),
    await stored('adapter_config.json', config),
  ];
  const manifest = WeightsManifest.encode(WeightsManifest.fromPartial({ policy, version, adapter })).finish();
  const manifestDigest = await blobs.put(manifest);
  const publisher = new FactPublisher(await nats.connect('trainer'));
  const fact = WeightsTrained.fromPartial({ policy, version, batch: number, manifestDigest });
  trained = (await publisher.publish('weightsTrained', fact, { expectSequence: trained })).sequence;
}

async function answersWith(stable: string): Promise<void> {
  const bucket = kvBucket(await nats.connect('publisher'), 'routes', Routes);
  await bucket.put(policy, Routes.fromPartial({ policy, stable }));
}

const exported = (...words: string[]) => runCommand(place, ['export', 'weights', ...words]);
const textOf = (...path: string[]) => readFileSync(join(directory.path, ...path), 'utf8');

it('writes the version that answers, or the one that is named, as an adapter', async () => {
  expect((await exported('--to', 'now')).values).toMatchObject([{ version: `${policy}-v2`, merged: false }]);
  expect(readdirSync(directory.join('now')).sort()).toEqual([
    'adapter_config.json',
    'adapter_model.safetensors',
    'backtalk.json',
  ]);
  expect(textOf('now', 'adapter_model.safetensors')).toBe(weightsOf(`${policy}-v2`));
  expect(textOf('now', 'adapter_config.json')).toBe(config);
  await exported(`${policy}-v1`, '--to', 'first');
  expect(textOf('first', 'adapter_model.safetensors')).toBe(weightsOf(`${policy}-v1`));
});

it.each([
  [['--to', 'full'], 'is not a new or empty folder.'],
  [[], "--to '' is not a folder, which weights need."],
  [['nonsense', '--to', 'none'], "version 'nonsense' is not a version, such as backtalk-v3."],
  [[`${policy}-v9`, '--to', 'none'], `version ${policy}-v9`],
  [[`${policy}-v0`, '--to', 'none'], 'the base model answers'],
  [[`${policy}-v1`, '--follow', '--to', 'none'], 'usable with --follow'],
])('refuses %j in one line, and leaves nothing behind', async (words, line) => {
  mkdirSync(directory.join('full'), { recursive: true });
  writeFileSync(directory.join('full/mine'), '');
  const { status, complaint } = await exported(...words);
  expect({ status: status > 0, complaint }).toEqual({
    status: true,
    complaint: expect.stringContaining(line) as string,
  });
  expect(existsSync(directory.join('none'))).toBe(false);
});

it('a version whose files were swept leaves no half of a folder', async () => {
  const manifest = WeightsManifest.fromPartial({
    policy,
    version: `${policy}-v4`,
    adapter: [
      await stored('adapter_model.safetensors', 'here'),
      { name: 'adapter_config.json', digest: 'ab'.repeat(32) },
    ],
  });
  const publisher = new FactPublisher(await nats.connect('trainer'));
  const manifestDigest = await blobs.put(WeightsManifest.encode(manifest).finish());
  const fact = WeightsTrained.fromPartial({ policy, version: `${policy}-v4`, batch: 4, manifestDigest });
  trained = (await publisher.publish('weightsTrained', fact, { expectSequence: trained })).sequence;
  const { status, complaint } = await exported(`${policy}-v4`, '--to', 'swept');
  expect(status).toBeGreaterThan(0);
  expect(complaint).toContain('adapter_config.json of backtalk-v4: old files are swept');
  expect(readdirSync(directory.path).filter((name) => name.startsWith('swept'))).toEqual([]);
});

it('follows what comes to answer: the newest few, a link to the one that answers, and back with a rollback', async () => {
  const { url, password } = nats.credentials('cli');
  const env = {
    PATH: inheritedEnvironment()['PATH'] ?? '',
    BACKTALK_NATS_URL: url,
    BACKTALK_NATS_USER: 'cli',
    BACKTALK_NATS_PASSWORD: password,
    ...place.environment,
  };
  const program = join(repositoryRoot(), 'services', 'cli', 'bin', 'backtalk.mjs');
  const words = ['export', 'weights', '--follow', '--keep', '2', '--to', 'kept'];
  // Of a data folder that was reset: another version had this name.
  mkdirSync(directory.join(`kept/${policy}-v1`), { recursive: true });
  writeFileSync(directory.join(`kept/${policy}-v1/adapter_model.safetensors`), 'of another life');
  const child = spawn(process.execPath, [program, ...words], { env, cwd: directory.path, stdio: 'ignore' });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  const kept = directory.join('kept');
  const versions = () =>
    readdirSync(kept)
      .filter((name) => name.startsWith(policy))
      .sort();
  const pointsTo = (version: string) =>
    until(() => existsSync(join(kept, 'latest')) && readlinkSync(join(kept, 'latest')) === version, {
      what: `latest is ${version}`,
      timeoutMs: 60_000,
    });
  try {
    for (const number of [1, 2, 3]) {
      await answersWith(`${policy}-v${number}`);
      await pointsTo(`${policy}-v${number}`);
      expect(textOf('kept', 'latest', 'adapter_model.safetensors')).toBe(weightsOf(`${policy}-v${number}`));
    }
    await until(() => versions().length === 2, { what: 'The oldest is gone' });
    expect(versions()).toEqual([`${policy}-v2`, `${policy}-v3`]);
    await answersWith(`${policy}-v2`);
    await pointsTo(`${policy}-v2`);
    expect(versions()).toEqual([`${policy}-v2`, `${policy}-v3`]);
    await answersWith(`${policy}-v0`);
    await until(() => !existsSync(join(kept, 'latest')), { what: 'The base answers', timeoutMs: 60_000 });
  } finally {
    child.kill('SIGTERM');
    await ended;
  }
}, 240_000);
