import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { startNats, type TestNats } from '../testing/nats-server.js';
import { until } from '../testing/until.js';
import { jsonCodec, kvBucket } from './kv-bucket.js';
import { learningSwitch, type LearningSwitch } from './policy-documents.js';

const policy = 'backtalk';
let nats: TestNats;

beforeAll(async () => {
  nats = await startNats();
});

afterAll(() => nats.stop());

describe('a document of a policy', () => {
  it('a pause holds until it is taken back, also where a watch that begins anew does not find it', async () => {
    const [trainer, admin] = [await nats.connect('trainer'), await nats.connect('admin')];
    const operators = learningSwitch(await nats.connect('cli'), policy);
    const seen: (LearningSwitch | undefined)[] = [];
    const stop = await learningSwitch(trainer, policy).watch((value) => seen.push(value));
    const changes: string[] = [];
    const bucket = kvBucket(trainer, 'settings', jsonCodec(z.unknown()));
    const stopListening = await bucket.watch('>', ({ kind }) => changes.push(kind));
    await operators.put({ paused: true });
    await until(() => seen.length === 1 && changes.length === 1);
    // As a copy that lags behind gives less than the stream's leader has.
    await admin.jsm.streams.purge('KV_settings');
    await nats.restart();
    await until(() => changes.includes('expired'));
    await operators.put({ paused: false });
    await until(() => seen.at(-1)?.paused === false);
    await operators.delete();
    await until(() => seen.at(-1) === undefined);
    expect(seen).toEqual([{ paused: true }, { paused: false }, undefined]);
    stop();
    stopListening();
  });
});
