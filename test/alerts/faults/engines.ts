// Engines that fail, hang, forget, or say what is not so.
import type { FakeFaults } from '@backtalk/dialects/testing';
import { until } from '@backtalk/kit/testing';
import { breakEngine, engineCounts, metric, setEngine } from '../../loop/controls.js';
import { over, type Fault } from '../fault.js';
import { resume } from '../operator.js';
import { keys } from '../scene.js';

function engineThat(alert: string, fault: string, faults: FakeFaults): Fault {
  return {
    fault,
    fires: [{ alert }],
    break: async ({ machine }) => {
      await breakEngine(machine.engine, faults);
      return () => breakEngine(machine.engine, {});
    },
  };
}

/** One group of clients after the other, so that first tokens come at all times and not at once. */
const slowerAndSlowerMs = [3_000, 6_000, 9_000, 12_000, 15_000];

export const engineFaults: readonly Fault[] = [
  engineThat('BacktalkGatewayErrors', 'the engine answers 500', { failStatus: 500 }),
  engineThat('BacktalkNothingTrainable', 'the engine gives no token ids', { lie: 'no_ids' }),
  engineThat('BacktalkTemplateMismatch', 'the engine renders prompts otherwise than it did when it answered', {
    lie: 'other_template',
  }),
  engineThat('BacktalkVersionUndecided', 'the engine loads no adapter', { loadStatus: 500 }),
  {
    fault: 'the engine computes other logprobs than the trainer; mended by that, and by `backtalk resume`',
    fires: [{ alert: 'BacktalkVersionBurned' }, { alert: 'BacktalkTrainingHeld' }],
    break: async ({ machine }) => {
      await breakEngine(machine.engine, { lie: 'wrong_scores' });
      return async () => {
        await breakEngine(machine.engine, {});
        await resume(machine);
      };
    },
  },
  {
    fault: 'the engine takes 15 s for a first token',
    fires: [{ alert: 'BacktalkFirstTokenSlow' }],
    break: async (scene) => {
      const { engine } = scene.machine;
      for (const firstTokenMs of slowerAndSlowerMs) {
        await setEngine(engine, { firstTokenMs });
        const crowd = scene.talk(2);
        await until(() => crowd.talking === 2, { what: 'Two more clients' });
      }
      return async () => {
        await setEngine(engine, { firstTokenMs: 0 });
        await scene.hush();
      };
    },
  },
  {
    fault: 'the engine loses its adapters three times',
    fires: [{ alert: 'BacktalkEngineRestarts' }],
    break: async ({ machine }) => {
      const restarts = () => metric(machine, 'loader', 'backtalk_loader_engine_restarts_total');
      const before = await restarts();
      for (let lost = 1; lost <= 3; lost += 1) {
        const held = async () => (await engineCounts(machine.engine)).adapters.length > 0;
        await until(held, { what: 'The engine holds an adapter', timeoutMs: 60_000, everyMs: 100 });
        await fetch(`${machine.engine}/fake/forget`, { method: 'POST' });
        const noticed = async () => (await restarts()) >= before + lost;
        await until(noticed, { what: 'The loader notices', timeoutMs: 60_000, everyMs: 100 });
      }
      return over;
    },
  },
];

const running = async (url: string) => (await engineCounts(url)).running;

export const twoEngineFaults: readonly Fault[] = [
  {
    fault: 'two engines are killed one after the other while they compute the same prompts',
    fires: [{ alert: 'BacktalkPromptsGivenUp' }],
    break: async ({ machine }) => {
      const second = `http://127.0.0.1:${String(machine.ports.endpoint + 45)}`;
      for (const engine of [machine.engine, second]) await setEngine(engine, { firstTokenMs: 30_000 });
      const bothWork = async () => (await running(machine.engine)) > 0 && (await running(second)) > 0;
      await until(bothWork, { what: 'Both engines compute', timeoutMs: 60_000, everyMs: 50 });
      machine.kill('engine');
      const died = async () => (await metric(machine, 'gateway', 'backtalk_gateway_engine_retries_total')) > 0;
      await until(died, { what: 'The gateway asks the other one', timeoutMs: 60_000, everyMs: 50 });
      machine.kill('engine-2');
      return async () => {
        await machine.serves('engine');
        await machine.serves('engine-2');
      };
    },
  },
];

function judgeThat(fault: string, settings: Parameters<typeof setEngine>[1], ...alerts: readonly string[]): Fault {
  return {
    fault,
    fires: alerts.map((alert) => ({ alert })),
    break: async (scene) => {
      const url = scene.judgeEngine;
      await setEngine(url, settings);
      scene.talk(3, keys.steady);
      return async () => {
        await setEngine(url, { tokenMs: 1, faults: {} });
        await scene.hush();
      };
    },
  };
}

/** On an installation whose judge has an engine of its own. */
export const judgeFaults: readonly Fault[] = [
  judgeThat(
    'the judge’s engine never answers, so that every vote times out',
    { faults: { hang: true } },
    'BacktalkVotesWaiting',
    'BacktalkVotesInvalid',
  ),
  {
    fault: 'the judge’s engine is wrong on turns whose verdict is known',
    fires: [{ alert: 'BacktalkVotesUntrusted' }],
    break: (scene) => {
      scene.misjudge(true);
      scene.talk(3, keys.steady);
      return () => scene.misjudge(false);
    },
  },
  judgeThat('the judge’s engine is slow while versions are trained', { tokenMs: 150 }, 'BacktalkJudgeBehind'),
];
