import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { asBacktalkError, kitErrors } from '../errors/backtalk-error.js';
import { makeCertificates } from '../testing/certificates.js';
import { freePort } from '../testing/free-port.js';
import { laptopInstallation } from '../testing/installation.js';
import { startNats, type TestNats } from '../testing/nats-server.js';
import { silentLogger } from '../testing/silent-logger.js';
import { TemporaryDirectory } from '../testing/temporary-directory.js';
import { until } from '../testing/until.js';
import { createService, type ServiceConfig, type ServiceContext } from './service.js';

let nats: TestNats;
let blobs: TemporaryDirectory;

beforeAll(async () => {
  blobs = new TemporaryDirectory();
  nats = await startNats();
});

afterAll(async () => {
  await nats.stop();
  blobs.remove();
});

async function configOf(): Promise<ServiceConfig> {
  const { url, user, password } = nats.credentials('collector');
  return {
    ...laptopInstallation(blobs.path),
    natsUrl: url,
    natsUser: user,
    natsPassword: password,
    instance: 'one',
    healthAddress: { host: '127.0.0.1', port: await freePort() },
    logLevel: 'silent',
  };
}

async function serviceThat(start: (context: ServiceContext<ServiceConfig>) => Promise<void>, config?: ServiceConfig) {
  return createService<ServiceConfig>({
    name: 'collector',
    config: config ?? (await configOf()),
    overrides: { logger: silentLogger },
    streams: ['TURNS'],
    stopWithinMs: 2_000,
    start: async (context) => {
      await start(context);
      return {};
    },
  });
}

async function readiness(port: number): Promise<{ status: number; checks: unknown }> {
  const response = await fetch(`http://127.0.0.1:${port}/readyz`);
  const { checks } = (await response.json()) as { checks: unknown };
  return { status: response.status, checks };
}

const expiry = /^backtalk_collector_certificate_expiry_timestamp_seconds (\S+)$/m;

async function expiryOf(config: ServiceConfig): Promise<string | undefined> {
  const service = await serviceThat(() => Promise.resolve(), config);
  await service.start();
  const response = await fetch(`http://127.0.0.1:${service.ports.health}/metrics`);
  const told = expiry.exec(await response.text())?.[1];
  await service.stop();
  return told;
}

describe('a service', () => {
  it('a service tells when its certificate ends, where it has one', async () => {
    const paths = makeCertificates(blobs);
    const { validTo } = new X509Certificate(readFileSync(paths.tlsCert));
    expect(await expiryOf({ ...(await configOf()), ...paths })).toBe(String(Date.parse(validTo) / 1_000));
    expect(await expiryOf(await configOf())).toBeUndefined();
  });

  it('a service is alive and not ready while its own parts start, and ready when they have started', async () => {
    let goOn: () => void = () => undefined;
    const isHeld = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    let begun: () => void = () => undefined;
    const hasBegun = new Promise<void>((resolve) => {
      begun = resolve;
    });
    const service = await serviceThat(async () => {
      begun();
      await isHeld;
    });
    const started = service.start();
    await hasBegun;
    expect(await readiness(service.ports.health)).toEqual({
      status: 503,
      checks: { service: 'the service is starting', broker: true, streams: true },
    });
    goOn();
    await started;
    expect(await readiness(service.ports.health)).toMatchObject({ status: 200 });
    await service.stop();
  });

  it('stops its own parts before the broker, and is not ready meanwhile', async () => {
    const seen: unknown[] = [];
    const service = await serviceThat(async ({ lifecycle, broker }) => {
      lifecycle.add('own', async () => {
        seen.push(broker.status(), await readiness(service.ports.health));
      });
      await Promise.resolve();
    });
    await service.start();
    await service.stop();
    const checks = { service: 'the service is stopping', broker: true, streams: true };
    expect(seen).toEqual(['up', { status: 503, checks }]);
  });

  it('stops what had been started when its start fails', async () => {
    const steps: string[] = [];
    const service = await serviceThat(async ({ lifecycle }) => {
      lifecycle.add('own', () => {
        steps.push('own stopped');
      });
      await Promise.reject(kitErrors.cancelled());
    });
    await expect(service.start()).rejects.toMatchObject({ code: 'cancelled' });
    await service.stop();
    expect(steps).toEqual(['own stopped']);
  });

  it('a service waits for a stream that it needs, says which, and gives up when it is stopped', async () => {
    const bare = await startNats({ streams: false });
    const { url, user, password } = bare.credentials('collector');
    const config = { ...(await configOf()), natsUrl: url, natsUser: user, natsPassword: password };
    const service = await serviceThat(() => Promise.resolve(), config);
    const started = service.start().catch((error: unknown) => asBacktalkError(error).code);
    const awaited = 'stream TURNS cannot be seen on the broker';
    await until(async () => JSON.stringify(await readiness(service.ports.health)).includes(awaited));
    expect(await readiness(service.ports.health)).toMatchObject({ status: 503, checks: { broker: true } });
    await service.stop();
    expect(await started).toBe('cancelled');
    await bare.stop();
  });
});
