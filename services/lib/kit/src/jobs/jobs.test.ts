import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { defineErrors } from '../errors/index.js';
import { Metrics, newTrace } from '../telemetry/index.js';
import { silentLogger, startValkey, until, type TestValkey } from '../testing/index.js';
import { jobQueue, type JobQueue } from './job-queue.js';
import { jobWorker, type JobInHand, type JobWorker, type JobWorkerOptions } from './job-worker.js';
import { checkValkey, connectValkey } from './valkey.js';

const errors = defineErrors('test', {
  crashed: { code: 'crashed', retry: 'later', message: () => 'The handler crashed.' },
  away: { code: 'away', retry: 'later', status: 503, message: () => 'What the handler needs is away.' },
  hopeless: { code: 'hopeless', retry: 'never', message: () => 'This will never do.' },
});

const schema = z.object({ turn: z.string() });
type Data = z.infer<typeof schema>;

let valkey: TestValkey;
const queues: JobQueue<Data>[] = [];
const workers: JobWorker[] = [];

beforeAll(async () => {
  valkey = await startValkey();
});

afterAll(async () => {
  await Promise.all(workers.map((worker) => worker.stop(500)));
  await Promise.all(queues.map((queue) => queue.close(500)));
  await valkey.stop();
});

function queueOf(name: string, { attempts = 3, timeoutMs = 10_000 } = {}): JobQueue<Data> {
  const queue = jobQueue({ name, valkeyUrl: valkey.url, schema, logger: silentLogger, attempts, timeoutMs });
  queues.push(queue);
  return queue;
}

async function work(
  name: string,
  handler: (job: JobInHand<Data>) => Promise<void>,
  more: Partial<JobWorkerOptions<Data>> = {},
): Promise<JobWorker> {
  const worker = jobWorker({
    name,
    valkeyUrl: valkey.url,
    schema,
    handler,
    concurrency: 2,
    backOff: { firstMs: 10, mostMs: 50 },
    logger: silentLogger,
    metrics: new Metrics('test'),
    ...more,
  });
  workers.push(worker);
  await worker.start();
  return worker;
}

describe('jobs', () => {
  it('are done once for each id, with their data and trace', async () => {
    const queue = queueOf('once');
    const trace = newTrace();
    await queue.add('turn_1', { turn: 't1' }, { trace });
    await queue.add('turn_1', { turn: 't1' });
    const done: JobInHand<Data>[] = [];
    await work('once', async (job) => {
      done.push(job);
    });
    await queue.add('turn_1', { turn: 't1' });
    await queue.add('turn_2', { turn: 't2' });
    await until(() => done.length === 2);
    expect(done.map((job) => job.data.turn)).toEqual(['t1', 't2']);
    expect(done[0]?.trace.traceId).toBe(trace.traceId);
    expect(await queue.oldestWaitingMs()).toBe(0);
  });

  it('are tried again as often as they may be, then listed as failed with a code, and done when retried', async () => {
    const queue = queueOf('tries');
    const attempts: number[] = [];
    let cured = false;
    await work('tries', async ({ attempt }) => {
      attempts.push(attempt);
      if (!cured) throw errors.crashed();
    });
    await queue.add('turn_1', { turn: 't1' });
    const [failed] = await until(async () => {
      const list = await queue.failed();
      return list.length === 1 && list;
    });
    expect(attempts).toEqual([1, 2, 3]);
    expect(failed).toMatchObject({ id: 'turn_1', reason: 'crashed', attempts: 3, data: { turn: 't1' } });
    cured = true;
    await queue.retry('turn_1');
    await until(async () => (await queue.counts()).failed === 0 && attempts.length === 4);
  });

  it('are not tried again when it is no use', async () => {
    const queue = queueOf('hopeless');
    let tries = 0;
    await work('hopeless', async () => {
      tries += 1;
      throw errors.hopeless();
    });
    await queue.add('turn_1', { turn: 't1' });
    await until(async () => (await queue.failed()).length === 1);
    expect(tries).toBe(1);
  });

  it('wait, and lose no try, while something they need is away', async () => {
    const queue = queueOf('outage', { attempts: 2 });
    let tries = 0;
    const attempts: number[] = [];
    await work('outage', async ({ attempt }) => {
      tries += 1;
      if (tries <= 10) throw errors.away();
      attempts.push(attempt);
    });
    await queue.add('turn_1', { turn: 't1' });
    await until(() => attempts.length === 1);
    expect(attempts).toEqual([1]);
    expect(await queue.failed()).toEqual([]);
  });

  it('are refused when their id or data is not as it must be', async () => {
    const queue = queueOf('refused');
    await expect(queue.add('12', { turn: 't' })).rejects.toMatchObject({ code: 'job_invalid' });
    await expect(queue.add('a:b', { turn: 't' })).rejects.toMatchObject({ code: 'job_invalid' });
    // @ts-expect-error: the compiler refuses it too.
    await expect(queue.add('turn_1', { turn: 5 })).rejects.toMatchObject({ code: 'job_invalid' });
  });

  it('end before a worker stops, up to its deadline', async () => {
    const queue = queueOf('stopping');
    let started = false;
    let aborted = false;
    const worker = await work('stopping', async ({ signal }) => {
      started = true;
      await new Promise<void>((resolve) => {
        signal.addEventListener('abort', () => {
          aborted = true;
          resolve();
        });
      });
    });
    await queue.add('turn_1', { turn: 't1' });
    await until(() => started);
    await worker.stop(100);
    expect(aborted).toBe(true);
  });
});

describe('Valkey away', () => {
  it('fails fast for who asks; workers go on within seconds of its return; nothing is lost', async () => {
    const queue = queueOf('away', { timeoutMs: 1_000 });
    const done: string[] = [];
    await work('away', async ({ data }) => {
      done.push(data.turn);
    });
    await until(() => queue.add('turn_1', { turn: 't1' }).then(() => true));
    await until(() => done.length === 1);
    await valkey.kill();
    const started = performance.now();
    await expect(queue.add('turn_2', { turn: 't2' })).rejects.toMatchObject({
      code: 'valkey_unavailable',
      status: 503,
    });
    expect(performance.now() - started).toBeLessThan(15_000);
    await valkey.restart();
    await until(() => queue.add('turn_3', { turn: 't3' }).then(() => true), { what: 'adding after the return' });
    await until(() => done.includes('t3'), { what: 'work after the return' });
  });

  it('without closing its connections is noticed, and work goes on when it answers again', async () => {
    const queue = queueOf('paused', { timeoutMs: 1_000 });
    const done: string[] = [];
    const warnings: object[] = [];
    const logger = { ...silentLogger, warn: (_event: string, fields: object = {}) => warnings.push(fields) };
    await work(
      'paused',
      async ({ data }) => {
        done.push(data.turn);
      },
      { logger },
    );
    valkey.pause();
    const started = performance.now();
    await expect(queue.add('turn_1', { turn: 't1' })).rejects.toMatchObject({ code: 'valkey_unavailable' });
    expect(performance.now() - started).toBeLessThan(15_000);
    await until(() => warnings.length > 0, { timeoutMs: 60_000, what: 'noticing the silence' });
    valkey.resume();
    await until(() => queue.add('turn_2', { turn: 't2' }).then(() => true));
    await until(() => done.includes('t2'), { timeoutMs: 60_000, what: 'work after the silence' });
  });

  it('that is emptied takes new jobs at once', async () => {
    const queue = queueOf('emptied');
    const done: string[] = [];
    await work('emptied', async ({ data }) => {
      done.push(data.turn);
    });
    await valkey.flush();
    await queue.add('turn_1', { turn: 't1' });
    await until(() => done.length === 1);
  });
});

describe('a Valkey that would drop jobs', () => {
  it('is refused in one line that says what to do', async () => {
    const client = connectValkey({ url: valkey.url, name: 'test', logger: silentLogger, commandTimeoutMs: 10_000 });
    await until(() => client.status === 'ready');
    await expect(checkValkey(client)).resolves.toBeUndefined();
    await client.config('SET', 'maxmemory-policy', 'allkeys-lru');
    await expect(checkValkey(client)).rejects.toMatchObject({ code: 'valkey_evicts', retry: 'stop' });
    await client.config('SET', 'maxmemory-policy', 'noeviction');
    client.disconnect();
  });
});
