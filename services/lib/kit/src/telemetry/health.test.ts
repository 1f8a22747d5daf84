import { afterEach, describe, expect, it } from 'vitest';
import { isBacktalkError } from '../errors/backtalk-error.js';
import { silentLogger } from '../testing/silent-logger.js';
import { Health } from './health.js';
import { Metrics } from './metrics.js';

const started: Health[] = [];

async function startHealth(port = 0): Promise<Health> {
  const health = new Health({
    address: { host: '127.0.0.1', port },
    metrics: new Metrics('test'),
    logger: silentLogger,
  });
  started.push(health);
  await health.start();
  return health;
}

async function ask(health: Health, path: string): Promise<{ status: number; text: string }> {
  const response = await fetch(`http://127.0.0.1:${health.port}${path}`, { signal: AbortSignal.timeout(5000) });
  return { status: response.status, text: await response.text() };
}

afterEach(async () => {
  for (const health of started.splice(0)) await health.stop();
});

describe('Health', () => {
  it('says that the process lives, whatever its checks say', async () => {
    const health = await startHealth();
    health.check('broker', () => 'down');
    expect((await ask(health, '/livez')).status).toBe(200);
  });

  it('a service is ready when every check is, and says why not otherwise', async () => {
    const health = await startHealth();
    let broker: true | string = true;
    health.check('broker', () => broker);
    expect(await ask(health, '/readyz')).toEqual({ status: 200, text: '{"ready":true,"checks":{"broker":true}}' });
    broker = 'no connection';
    expect(await ask(health, '/readyz')).toEqual({
      status: 503,
      text: '{"ready":false,"checks":{"broker":"no connection"}}',
    });
  });

  it('serves the metrics, and nothing else', async () => {
    const health = await startHealth();
    expect((await ask(health, '/metrics')).text).toContain('process_cpu_seconds_total');
    expect((await ask(health, '/other')).status).toBe(404);
  });

  it('stops the start with the address when the port is taken', async () => {
    const { port } = await startHealth();
    const error: unknown = await startHealth(port).catch((thrown: unknown) => thrown);
    expect(isBacktalkError(error, 'address_unavailable') && error.message).toContain(`127.0.0.1:${port}`);
  });
});
