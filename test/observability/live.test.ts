import { until } from '@backtalk/kit/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { metric } from '../loop/controls.js';
import { startCrowd, type Crowd } from '../loop/crowd.js';
import { startTestMachine, type TestMachine } from '../loop/machine.js';
import { standInMeasurements } from '../loop/stand-ins/training-worker.js';
import { dashboardQueries, filled, needsCluster, needsEngine } from './dashboard-queries.js';
import { namespace, prometheusAbsent, seriesOf, startPrometheus, type Prometheus, type Target } from './prometheus.js';
import { behave, hangValkey, hurtEngine, refuseVersion, rollBackUnheard } from './stir.js';

const absent = prometheusAbsent();
const swaps = 3;
const stepSeconds = 2;

let machine: TestMachine;
let crowd: Crowd;
let prometheus: Prometheus;
let startedMs: number;

function targetsOf({ ports }: TestMachine): Target[] {
  const { trainingWorker: _noMetrics, ...services } = ports.health;
  const named = Object.entries(services).map(([job, port]) => ({ job, address: `127.0.0.1:${String(port)}` }));
  return [...named, { job: 'engine', address: `127.0.0.1:${String(ports.engine)}` }];
}

async function swapped(count: number): Promise<void> {
  const isThere = async () =>
    (await metric(machine, 'publisher', 'backtalk_publisher_versions_total', 'stable')) >= count;
  await until(isThere, { what: `${String(count)} swaps`, timeoutMs: 120_000, everyMs: 200 });
}

describe.skipIf(absent !== undefined)(
  `dashboards on the running loop${absent === undefined ? '' : ` (skipped: ${absent})`}`,
  () => {
    beforeAll(async () => {
      machine = await startTestMachine({
        engine: 'stand-in',
        training: 'stand-in',
        pace: { tokenMs: 10, answerTokens: 12 },
        environment: {
          trainer: { BACKTALK_RECIPE_SET: 'effective=2,effectiveMin=2' },
          judge: { BACKTALK_JUDGE_VOTE_CONCURRENCY: '16', BACKTALK_JUDGE_TURNS_IN_FLIGHT: '32' },
          collector: { BACKTALK_SESSION_IDLE: '4s' },
          publisher: { BACKTALK_COMMIT_DEADLINE: '1s' },
        },
      });
      startedMs = Date.now();
      prometheus = await startPrometheus(targetsOf(machine));
      // The first look comes before anything has happened: what is there from the first look on is no increase.
      const { length } = targetsOf(machine);
      await until(async () => (await prometheus.up()).length === length, { what: 'All is scraped', timeoutMs: 60_000 });
      crowd = startCrowd({ gateway: machine.gateway, seed: 4, clients: 4, optsOut: 0.2, streams: 0.7 });
      await swapped(swaps);
      await behave(machine);
      await hurtEngine(machine);
      await hangValkey(machine);
      await refuseVersion(machine);
      await swapped(swaps + 2);
      await rollBackUnheard(machine);
      await swapped(swaps + 4);
    });

    afterAll(async () => {
      await crowd?.stop();
      await prometheus?.stop();
      await machine?.stop();
    });

    it('every metrics address of the loop is scraped', async () => {
      const wanted = targetsOf(machine).map(({ address }) => address);
      const all = async () => {
        const up = await prometheus.up();
        return up.length === wanted.length && up;
      };
      expect((await until(all, { what: 'All addresses are up', timeoutMs: 60_000 })).sort()).toEqual(wanted.sort());
    });

    const queries = dashboardQueries().filter((query) => !needsCluster(query) && !needsEngine(query));

    it.each(queries)('$dashboard: $place: $expr', async ({ expr }) => {
      const variables = {
        namespace,
        release: '.*',
        pool: '.*',
        policy: 'backtalk',
        __rate_interval: '10s',
        __interval: `${String(stepSeconds)}s`,
        __range: `${String(Math.ceil((Date.now() - startedMs) / 1_000))}s`,
      };
      const found = await seriesOf(prometheus, { expr: filled(expr, variables), fromMs: startedMs, stepSeconds });
      expect(found.length).toBeGreaterThan(0);
      // Nothing here has a pod's name: the address stands in its place.
      if (expr.includes('"pod", "instance")'))
        for (const { metric } of found) expect(metric['pod']).toBe(metric['instance']);
      const [, names] = /step_measurement\{[^}]*\bname=~"([^"]+)"/.exec(expr) ?? [];
      if (names === undefined) return;
      // Figures of a step are shown as the training worker gave them, each under its own name, and no others.
      const shown = Object.fromEntries(found.map(({ metric: { name = '' }, values }) => [name, values.at(-1)]));
      const given = names.split('|').map((name) => [name, standInMeasurements[name]]);
      expect(shown).toEqual(Object.fromEntries(given));
    });
  },
);
