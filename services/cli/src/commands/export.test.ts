import { lstatSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { FactPublisher } from '@backtalk/kit';
import { startNats, TemporaryDirectory, type TestNats } from '@backtalk/kit/testing';
import { BatchClosed } from '@backtalk/proto/facts';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { runCommand, type Place } from '../testing/cluster-command.js';

const directory = new TemporaryDirectory('export');
let nats: TestNats;
let place: Place;

beforeAll(async () => {
  nats = await startNats();
  place = { nats, user: 'cli', folder: directory.path };
  const publisher = new FactPublisher(await nats.connect('trainer'));
  await publisher.publish('batchClosed', BatchClosed.fromPartial({ policy: 'p', number: 1, why: 'full' }), {
    expectSequence: 0,
  });
});
afterAll(async () => {
  await nats.stop();
  directory.remove();
});
beforeEach(() => writeFileSync(directory.join('batches.jsonl'), 'of an earlier export\n'));

const exported = (file: string, at = place) => runCommand(at, ['export', 'batches', '--to', file]);

it('an export takes the place of an earlier one when it is whole', async () => {
  expect(await exported('batches.jsonl')).toMatchObject({ status: 0 });
  expect(readFileSync(directory.join('batches.jsonl'), 'utf8')).toContain('"fact":"batchClosed"');
  expect(readdirSync(directory.path)).toEqual(['batches.jsonl']);
});

it('an export through a link is written where that leads to', async () => {
  symlinkSync('batches.jsonl', directory.join('link.jsonl'));
  expect(await exported('link.jsonl')).toMatchObject({ status: 0 });
  expect(readFileSync(directory.join('batches.jsonl'), 'utf8')).toContain('"fact":"batchClosed"');
  expect(lstatSync(directory.join('link.jsonl')).isSymbolicLink()).toBe(true);
});

it('an export that cannot be read leaves the earlier one as it was', async () => {
  const away = { ...place, environment: { BACKTALK_NATS_URL: 'nats://127.0.0.1:9' } };
  expect(await exported('batches.jsonl', away)).toMatchObject({ status: 3 });
  expect(readFileSync(directory.join('batches.jsonl'), 'utf8')).toBe('of an earlier export\n');
});

it('an export onto a full disk is refused in a sentence', async () => {
  const { status, values, complaint } = await exported('/dev/full');
  expect({ status, values }).toMatchObject({ status: 2, values: [{ error: { code: 'path_refused' } }] });
  expect(complaint.trim()).toBe('/dev/full cannot be written: the disk is full.');
});
