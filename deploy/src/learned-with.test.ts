import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import type { Manifest } from '@backtalk/kit';
import { TemporaryDirectory } from '@backtalk/kit/testing';
import { afterAll, expect, it } from 'vitest';
import { chosenModels } from './chosen-models.js';
import { writeConnection } from './connection.js';
import { openDataFolder } from './data-folder.js';
import { readOptions } from './options.js';
import { portsFrom } from './ports.js';
import { copyRestored } from './restored-files.js';
import { loadSecrets } from './secrets.js';
import { createTerminal } from './terminal.js';

const directory = new TemporaryDirectory('learned-with');
afterAll(() => {
  directory.remove();
});

const secrets = loadSecrets(directory.path);

/** Nothing of Python is there: a start that goes on fails at what it asks Python for. */
function chosen(folder: string, flags: readonly string[]): Promise<unknown> {
  const options = readOptions(['--data', directory.join(folder), ...flags], directory.path, {});
  const data = openDataFolder(options.data);
  const terminal = createTerminal(new PassThrough().resume());
  return chosenModels({ root: directory.path, options, data, terminal, signal: new AbortController().signal });
}

/** A folder that learned on the laptop's model. */
function learned(folder: string): void {
  const data = openDataFolder(directory.join(folder));
  loadSecrets(data.path);
  writeConnection({ data, ports: portsFrom(30_000), secrets, host: '127.0.0.1', policies: ['backtalk'] });
  mkdirSync(join(data.adapters, 'backtalk-v1-0123456789abcdef'), { recursive: true });
}

function copy(name: string, served?: Manifest['served']): string {
  const folder = directory.join(name);
  mkdirSync(folder);
  const manifest: Manifest = {
    format: 1,
    takenAt: '2026-11-29',
    streams: [],
    blobs: 0,
    corruptBlobs: [],
    files: [],
    served,
  };
  writeFileSync(join(folder, 'manifest.json'), JSON.stringify(manifest));
  return folder;
}

it.each([
  ['another base', ['--model', 'owner/other'], 'other_base_model'],
  ['another base on cards', ['--profile', 'gpu', '--model', 'owner/other'], 'other_base_model'],
  ['other numbers', ['--quantization', 'nf4'], 'other_quantization'],
  ['a copy', ['--model', 'owner/smollm2-135m-wishes', '--restore', copy('whole')], 'data_folder_in_use'],
])('a folder that has learned refuses %s before anything is fetched', async (_, flags, code) => {
  learned('used');
  await expect(chosen('used', flags)).rejects.toMatchObject({ code });
  expect(readdirSync(directory.join('used', 'models'))).toEqual([]);
});

it('a start in a folder whose last start is not known to the end is refused before anything is fetched', async () => {
  learned('damaged');
  const { connection, models } = openDataFolder(directory.join('damaged'));
  const written = readFileSync(connection, 'utf8');
  writeFileSync(connection, written.slice(0, written.indexOf('"natsUrl"')));
  await expect(chosen('damaged', ['--model', 'owner/any'])).rejects.toMatchObject({ code: 'connection_damaged' });
  expect(readdirSync(models)).toEqual([]);
});

it('a start into which a copy was put in part is refused before anything is fetched', async () => {
  copyRestored(copy('cut'), openDataFolder(directory.join('part')));
  await expect(chosen('part', ['--model', 'owner/any'])).rejects.toMatchObject({ code: 'restore_cut_off' });
});

const base = { baseModel: 'Qwen3-4B', policies: ['ada', 'ben'], quantization: 'nf4' } as const;
const ofLaptop = { baseModel: 'smollm2-135m-wishes', policies: ['backtalk'], quantization: 'none' } as const;
const [model, policies, numbers] = [
  ['--model', 'Qwen/Qwen3-4B'],
  ['--policies', 'ben,ada,eve'],
  ['--quantization', 'nf4'],
] as const;

it.each([
  [
    'without its base',
    base,
    [...policies, ...numbers],
    'the model Qwen3-4B, and this start has smollm2-135m-wishes: start with --model and its folder, or its id at the hub.',
  ],
  [
    'without a policy of it',
    base,
    [...model, ...numbers],
    'the policies ada, ben, and this start has backtalk: start with --policies ada,ben.',
  ],
  [
    'with other numbers',
    base,
    [...model, ...policies],
    'a base with --quantization nf4, and this start has none: start with --quantization nf4.',
  ],
  [
    'with another base than the laptop’s',
    ofLaptop,
    model,
    'the model smollm2-135m-wishes, and this start has Qwen3-4B: start without --model.',
  ],
])('a copy is refused to a start %s, in one line that names the flag', async (what, served, flags, line) => {
  const from = copy(`copy ${what}`, served);
  const folder = `new ${what}`;
  await expect(chosen(folder, [...flags, '--restore', from])).rejects.toThrow(
    `What the copy in ${from} has learned belongs to ${line}`,
  );
  expect(readdirSync(directory.join(folder, 'models'))).toEqual([]);
});

it.each([
  ['that says what it was learned with', base, [...model, ...policies, ...numbers]],
  ['of an earlier release, which does not say it,', undefined, model],
])('a copy %s goes on with a start that fits', async (what, served, flags) => {
  const from = copy(`fits-${what.length}`, served);
  // The first thing that it asks Python for.
  await expect(chosen('fitting', [...flags, '--restore', from])).rejects.toMatchObject({ code: 'model_not_fetched' });
});
