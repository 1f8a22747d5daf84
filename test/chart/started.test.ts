// The strongest thing that can be said of the chart without a cluster: its processes, started with exactly what it renders,
// serve a request.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { z } from 'zod';
import { release, renderAgain } from './helm.js';
import { grpcClient } from '@backtalk/kit';
import { TrainingWorkerServiceDefinition } from '@backtalk/proto/training';
import { containerOf, podOf } from './pods.js';
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

it('the test of Helm without a key sees that the gateway asks for one', () => {
  const bucket = renderAgain({ gateway: { keys: { source: 'bucket' } } });
  expect(containerOf(podOf(bucket, 'test'), 'request').env.map(({ name }) => name)).toEqual(['ENDPOINT', 'MODEL']);
  const { env, command } = containerOf(podOf(chart.objects, 'test'), 'request');
  expect(command).toEqual(containerOf(podOf(bucket, 'test'), 'request').command);
  expect(env.map(({ name }) => name)).toContain('API_KEY');
  const run = chart.runToEnd('test', 'request', ['env', '-u', 'API_KEY', ...command]);
  expect(run).toMatchObject({ status: 0, output: expect.stringContaining('asks for a key') as string });
}, 60_000);

it('the training worker answers where the trainer calls it, with the base model that loaders ask engines for', async () => {
  const trainer = chart.environmentOf('trainer', 'trainer');
  const client = grpcClient(TrainingWorkerServiceDefinition, trainer['BACKTALK_TRAINING_WORKER'] ?? '', {
    caller: 'trainer',
    wire: { token: trainer['BACKTALK_SERVICE_TOKEN'] ?? '' },
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
