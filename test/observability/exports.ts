// What running processes export, held against their READMEs, and what panels on engines and training workers find of it.
// In: a machine with a real engine and a real training worker. It changes nothing there but for one answer.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '@backtalk/kit/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { root, type TestMachine } from '../loop/machine.js';
import { ask } from '../loop/talk.js';
import { sectionOf } from '../tidy/readme.js';
import { dashboardQueries, filled, needsEngine } from './dashboard-queries.js';
import { namespace, prometheusAbsent, seriesOf, startPrometheus, type Prometheus } from './prometheus.js';

const services = ['gateway', 'collector', 'judge', 'trainer', 'publisher', 'loader'] as const;

export function holdExports(machine: () => TestMachine): void {
  holdNames(machine);
  holdPanels(machine);
}

/** Of a certificate, which no process of this machine has. */
const needsCertificate = /_certificate_expiry_timestamp_seconds$/;

function documented(folder: string): Set<string> {
  const section = sectionOf(readFileSync(join(root, 'services', folder, 'README.md'), 'utf8'), 'Metrics');
  return new Set([...section.matchAll(/^\|\s*`([A-Za-z0-9_:]+)`/gm)].map(([, name = '']) => name));
}

/** Names of what a process exports, as they stand in `# TYPE` lines; a histogram is one name. */
async function exported(port: number): Promise<Set<string>> {
  const text = await (await fetch(`http://127.0.0.1:${String(port)}/metrics`)).text();
  return new Set([...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name = '']) => name));
}

function holdNames(machine: () => TestMachine): void {
  it.each(services)('the metrics of the running %s are those of its README and of the kit', async (service) => {
    const readme = documented(service);
    const ofKit = new Set([...documented('lib/kit')].map((name) => name.replace('SERVICE', service)));
    const own = new Set(
      [...(await exported(machine().ports.health[service]))].filter((name) => name.startsWith('backtalk_')),
    );
    expect([...own].filter((name) => !readme.has(name) && !ofKit.has(name))).toEqual([]);
    expect([...readme].filter((name) => !own.has(name))).toEqual([]);
  });

  it('the worker’s metrics are those of its README, engine and training worker together', async () => {
    const readme = documented('worker');
    const engine = await exported(machine().ports.engine);
    const training = await exported(machine().ports.health.trainingWorker);
    const own = [...engine, ...training].filter((name) => /^(backtalk_|vllm:)/.test(name));
    // Counters are announced without the ending that their samples have, or with it, by version of the client library.
    const plain = (name: string) => name.replace(/_total$/, '');
    const known = new Set([...readme].map(plain));
    const there = new Set(own.map(plain));
    expect([...there].filter((name) => !known.has(name) && !name.endsWith('_created'))).toEqual([]);
    expect([...known].filter((name) => !there.has(name) && !needsCertificate.test(name))).toEqual([]);
  });
}

function holdPanels(machine: () => TestMachine): void {
  const absent = prometheusAbsent();
  describe.skipIf(absent !== undefined)(
    `panels on engines and training workers${absent === undefined ? '' : ` (skipped: ${absent})`}`,
    () => {
      let prometheus: Prometheus;
      const startedMs = Date.now();

      beforeAll(async () => {
        const { engine, health } = machine().ports;
        prometheus = await startPrometheus([
          { job: 'engine', address: `127.0.0.1:${String(engine)}` },
          { job: 'training-worker', address: `127.0.0.1:${String(health.trainingWorker)}` },
        ]);
        await until(async () => (await prometheus.up()).length === 2, { what: 'Both are scraped', timeoutMs: 60_000 });
        await ask(machine().gateway, { messages: [{ role: 'user', content: 'Say hello.' }], maxTokens: 8 });
      });

      afterAll(async () => {
        await prometheus?.stop();
      });

      it.each(dashboardQueries().filter(needsEngine))('$dashboard: $place: $expr', async ({ expr }) => {
        const variables = {
          namespace,
          release: '.*',
          pool: '.*',
          policy: 'backtalk',
          __rate_interval: '20s',
          __interval: '2s',
          __range: '120s',
        };
        const found = await seriesOf(prometheus, { expr: filled(expr, variables), fromMs: startedMs });
        expect(found.length).toBeGreaterThan(0);
      });
    },
  );
}
