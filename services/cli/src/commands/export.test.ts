import { lstatSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { FactPublisher } from '@backtalk/kit';
import { startNats, TemporaryDirectory, type TestNats } from '@backtalk/kit/testing';
import { BatchClosed, Conversation_Encoding, TurnOpened } from '@backtalk/proto/facts';
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

it('a turn whose conversation began in turns that the log holds no more is exported without it', async () => {
  const gateway = new FactPublisher(await nats.connect('gateway'));
  const messages = Buffer.from(JSON.stringify([{ role: 'user', content: 'And then?' }]));
  const ids = { tenant: 't', user: 'u', policy: 'p' };
  const encoding = Conversation_Encoding.ENCODING_JSON;
  for (const [turn, conversation] of [
    ['turn_1', { encoding, messages }],
    ['turn_2', { encoding, messages, baseTurn: 'turn_gone', sharedMessages: 1 }],
  ] as const)
    await gateway.publish('turnOpened', TurnOpened.fromPartial({ ...ids, turn, conversation }));
  const { status } = await runCommand(place, ['export', 'turns', '--to', 'turns.jsonl']);
  expect(status).toBe(0);
  const lines = readFileSync(directory.join('turns.jsonl'), 'utf8').trim().split('\n');
  expect(lines.map((line) => (JSON.parse(line) as { conversation: unknown }).conversation)).toEqual([
    { messages: [{ role: 'user', content: 'And then?' }], tools: [], templateArguments: {} },
    null,
  ]);
  rmSync(directory.join('turns.jsonl'));
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
