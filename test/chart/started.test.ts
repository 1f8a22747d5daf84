// The strongest thing that can be said of the chart without a cluster: its processes, started with exactly what it renders,
// serve a request.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { z } from 'zod';
import { sha256Hex } from '@backtalk/kit';
import { grpcClient } from '@backtalk/kit/grpc';
import { until } from '@backtalk/kit/testing';
import { TrainingWorkerServiceDefinition } from '@backtalk/proto/training';
import { release, renderAgain, type Values } from './helm.js';
import { answersOk, StartedChart } from './started.js';

const seen = z.object({
  parts: z.array(z.object({ part: z.string(), ready: z.boolean(), why: z.string() })),
  engines: z.array(z.object({ ready: z.boolean(), versions: z.array(z.string()) })),
  facts: z.record(z.string(), z.number()),
});

const chart = new StartedChart(renderAgain(), `${release}-backtalk`);

beforeAll(async () => {
  await Promise.all([
    chart.start('nats', 'nats'),
    chart.start('valkey', 'valkey'),
    chart.start('engine-serving', 'engine', (address) => answersOk(`http://${address}:30030/health`)),
    chart.start('training', 'training'),
  ]);
}, 170_000);

afterAll(() => chart.stop());

it('the Job makes streams and buckets', () => {
  expect(chart.runToEnd('streams', 'streams')).toMatchObject({ status: 0 });
}, 170_000);

it('all services become ready', async () => {
  await Promise.all([
    chart.start('engine-serving', 'loader'),
    chart.start('publisher', 'publisher'),
    chart.start('trainer', 'trainer'),
    chart.start('collector', 'collector'),
    chart.start('judge', 'judge'),
    chart.start('gateway', 'gateway'),
  ]);
}, 170_000);

it('what `helm test` asks is answered by the base model, and recorded', () => {
  const { status, output } = chart.runToEnd('test', 'request');
  expect(output).toMatch(/^Turn turn_\w+ was answered by backtalk-v0\.\n$/);
  expect(status).toBe(0);
}, 170_000);

it('the training worker answers where the trainer calls it, with the base model that loaders ask engines for', async () => {
  const trainer = chart.environmentOf('trainer', 'trainer');
  const client = grpcClient(TrainingWorkerServiceDefinition, trainer['BACKTALK_TRAINING_WORKER'] ?? '', {
    caller: 'trainer',
    wire: { tokens: { trainerToTraining: trainer['BACKTALK_TRAINER_TO_TRAINING_TOKEN'] ?? '' } },
  });
  try {
    const { baseModel, device, dtype } = await client.status({}, { deadlineMs: 10_000 });
    const asked = chart.environmentOf('engine-serving', 'loader')['BACKTALK_BASE_MODEL'];
    expect({ baseModel, device, dtype }).toEqual({ baseModel: asked, device: 'cpu', dtype: 'float32' });
  } finally {
    client.close();
  }
}, 30_000);

it('commands see every part and the turn', () => {
  const { status, output } = chart.runToEnd('commands', 'commands', ['backtalk', '--json', 'status']);
  expect(status, output).toBe(0);
  const { parts, engines, facts } = seen.parse(JSON.parse(output));
  expect(parts.map(({ part }) => part.split(' ')[0]).sort()).toEqual(['gateway', 'loader', 'publisher']);
  for (const { part, ready, why } of parts) expect({ part, ready, why }).toMatchObject({ ready: true });
  expect(engines).toMatchObject([{ ready: true, versions: ['backtalk-v0'] }]);
  expect(facts['turnCompleted']).toBe(1);
}, 60_000);

/** A Secret of the reader's own with one client's key in it. */
function clientSecret(key: string): Record<string, string> {
  const keys = [{ sha256: sha256Hex(key), tenant: 'default', user: 'default' }];
  return { 'client-key': key, 'keys.json': JSON.stringify({ keys }) };
}

/** Another gateway in the place of the one before, with these values and Secrets. */
async function gatewayWith(values: Values, secrets: Readonly<Record<string, Readonly<Record<string, string>>>>) {
  chart.upgrade(renderAgain(values), secrets);
  await chart.start('gateway', 'gateway');
}

const answered = {
  status: 0,
  output: expect.stringMatching(/^Turn turn_\w+ was answered by backtalk-v0\.\n$/) as string,
};

it('what `helm test` asks is answered with the key of a Secret that holds all that is secret', async () => {
  const own = { ...chart.generated, ...clientSecret('own-client-key') };
  await gatewayWith({ secrets: { generate: false, existingSecret: 'own' } }, { own });
  expect(chart.runToEnd('test', 'request')).toMatchObject(answered);
}, 170_000);

it('what `helm test` asks is answered with the key of a Secret of clients’ keys', async () => {
  const clients = clientSecret('client-key-of-clients');
  await gatewayWith({ gateway: { keys: { existingSecret: 'clients' } } }, { clients });
  expect(chart.runToEnd('test', 'request')).toMatchObject(answered);
}, 170_000);

it('what `helm test` asks is refused where keys stand in the broker’s bucket, and answered with one of them', async () => {
  chart.upgrade(renderAgain({ gateway: { keys: { source: 'bucket' } } }), {});
  const add = ['env', 'BACKTALK_NEW_KEY=bt_key-of-the-bucket', 'backtalk', 'keys', 'add', '--user', 'tester'];
  expect(chart.runToEnd('commands', 'commands', add)).toMatchObject({ status: 0 });
  // A gateway that had keys is ready once it has one.
  await chart.start('gateway', 'gateway');
  const refused = { status: 0, output: expect.stringContaining('asks for a key') as string };
  await until(() => chart.runToEnd('test', 'request').output.includes('asks for a key'), {
    what: 'The key in the gateway',
  });
  expect(chart.runToEnd('test', 'request')).toMatchObject(refused);
  const named = renderAgain({ gateway: { keys: { source: 'bucket', existingSecret: 'bucket-client' } } });
  chart.upgrade(named, { 'bucket-client': { 'client-key': 'bt_key-of-the-bucket' } });
  expect(chart.runToEnd('test', 'request')).toMatchObject(answered);
}, 170_000);
