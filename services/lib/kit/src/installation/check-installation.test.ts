import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ensureStreams } from '../broker/streams.js';
import { freePort } from '../testing/free-port.js';
import { laptopInstallation } from '../testing/installation.js';
import { startNatsCluster, type TestNatsCluster } from '../testing/nats-cluster.js';
import { startNats, type TestNats } from '../testing/nats-server.js';
import { startValkey, type TestValkey } from '../testing/valkey-server.js';
import { checkInstallation, type InstallationConfig } from './check-installation.js';

/** Servers of a cluster that has just started do not know each other yet. */
const threeCopies = { replicas: 3, turnsBytesMax: 64 * 1024 * 1024, withinMs: 90_000 };

let alone: TestNats;
let cluster: TestNatsCluster;
let valkey: TestValkey;

beforeAll(async () => {
  [alone, cluster, valkey] = await Promise.all([startNats(), startNatsCluster(), startValkey()]);
  await ensureStreams(await cluster.connect('admin'), threeCopies);
}, 180_000);

afterAll(async () => {
  await Promise.all([alone.stop(), cluster.stop(), valkey.stop()]);
});

function config(changes: Partial<InstallationConfig> = {}): InstallationConfig {
  return { ...laptopInstallation('unused'), profile: 'production', natsMonitorUrl: cluster.monitorUrls, ...changes };
}

function withPolicy<T>(policy: string, work: () => Promise<T>): Promise<T> {
  const client = new Redis(valkey.url);
  const set = (value: string) => client.config('SET', 'maxmemory-policy', value);
  return set(policy)
    .then(work)
    .finally(async () => {
      await set('noeviction');
      client.disconnect();
    });
}

describe('the production profile', () => {
  it('lets every service start on three copies, synced writes and a Valkey that keeps its jobs', async () => {
    for (const user of ['gateway', 'collector', 'judge', 'trainer', 'publisher', 'loader'] as const) {
      const settings = config({ valkeyUrl: valkey.url, blobStore: { kind: 'jetstream' } });
      await expect(checkInstallation(settings, await cluster.connect(user))).resolves.toBeUndefined();
    }
  });

  it('refuses streams with one copy, in one line that says what to run', async () => {
    const checking = checkInstallation(config({ natsMonitorUrl: '' }), await alone.connect('loader'));
    await expect(checking).rejects.toMatchObject({ code: 'installation_unfit', retry: 'stop' });
    const message = await checking.catch((error: unknown) => String(error));
    expect(message).toContain('WEIGHTS');
    expect(message).toContain('npx backtalk streams ensure');
    expect(message).not.toContain('\n');
  });

  it('refuses a Valkey that may drop jobs', async () => {
    await withPolicy('allkeys-lru', async () => {
      const checking = checkInstallation(config({ valkeyUrl: valkey.url }), await cluster.connect('judge'));
      await expect(checking).rejects.toThrow('set maxmemory-policy noeviction in place of allkeys-lru');
    });
  });

  it('refuses a broker and a Valkey that are too old', async () => {
    const checking = checkInstallation(config({ valkeyUrl: valkey.url }), await cluster.connect('judge'), undefined, {
      broker: '99.0.0',
      redis: '99.0.0',
    });
    await expect(checking).rejects.toThrow(/nats-server \S+ is too old, run 99.0.0 or later.*Valkey \S+ is too old/);
  });

  it('refuses a broker that acknowledges before it has written to disk', { timeout: 180_000 }, async () => {
    const lazy = await startNatsCluster((text) => text.replace('sync_interval: always', 'sync_interval: "2m"'));
    await ensureStreams(await lazy.connect('admin'), threeCopies);
    const checking = checkInstallation(config({ natsMonitorUrl: lazy.monitorUrls }), await lazy.connect('collector'));
    await expect(checking).rejects.toThrow('set jetstream sync_interval: always');
    await lazy.stop();
  });

  it('a service starts where Valkey or the monitor is away: what cannot be asked is warned of', async () => {
    const nobody = `127.0.0.1:${await freePort()}`;
    const away = config({ natsMonitorUrl: `http://${nobody}`, valkeyUrl: `redis://${nobody}` });
    await expect(checkInstallation(away, await cluster.connect('gateway'))).resolves.toBeUndefined();
  });
});

describe('other profiles', () => {
  it('other profiles start on one copy: the trial warns, the laptop does not look', async () => {
    for (const profile of ['trial', 'laptop'] as const) {
      const checking = checkInstallation(config({ profile, natsMonitorUrl: '' }), await alone.connect('gateway'));
      await expect(checking).resolves.toBeUndefined();
    }
  });
});
