// What goes wrong in a bad week, each for as long as it is told: every process is killed or stands still, the engine lies,
// refuses, forgets or breaks off, Valkey is emptied. In: a machine under load. Out: the same machine, with the fault gone.
import { createLogger } from '@backtalk/kit';
import { connectValkey } from '@backtalk/kit/valkey';
import type { FakeFaults } from '@backtalk/dialects/testing';
import { until } from '@backtalk/kit/testing';
import type { TestMachine } from '../loop/machine.js';

export interface Fault {
  readonly name: string;
  /** Begins it; gives what ends it. */
  begin(machine: TestMachine): Promise<() => Promise<void>>;
}

const toldWithinMs = 2_000;
const services = ['gateway', 'collector', 'judge', 'trainer', 'publisher', 'loader'] as const;
const others = ['training-worker', 'engine', 'nats', 'valkey'] as const;

const killed = (name: string): Fault => ({
  name: `${name} is killed`,
  begin: (machine) => {
    const before = machine.pid(name);
    // 0: another fault has killed it, and it is not back yet.
    if (before !== 0) machine.kill(name);
    return Promise.resolve(() => machine.serves(name, before));
  },
});

const stands = (name: string): Fault => ({
  name: `${name} stands still`,
  begin: (machine) => {
    const pid = machine.pid(name);
    if (pid !== 0) machine.kill(name, 'SIGSTOP');
    // Another fault may have ended the process meanwhile.
    return Promise.resolve(() => {
      if (pid !== 0 && machine.pid(name) === pid) machine.kill(name, 'SIGCONT');
      return machine.serves(name);
    });
  },
});

const engineFaults: Readonly<Record<string, FakeFaults>> = {
  'the engine breaks streams off': { dieAfterTokens: { tokens: 3, how: 'socket' } },
  'the engine ends streams with an error': { dieAfterTokens: { tokens: 3, how: 'error_frame' } },
  'the engine aborts answers': { abortAfterTokens: 2 },
  'the engine is busy': { busy: true },
  'the engine says that it is dead': { dead: true },
  'the engine gives no ids': { lie: 'no_ids' },
  'the engine gives no logprobs': { lie: 'no_logprobs' },
  'the engine gives the wrong logprobs': { lie: 'wrong_scores' },
  'the engine loads nothing': { loadStatus: 500 },
  'the engine has no room for what it loads': { loadStatus: 503 },
};

/** What the engine is told: another fault may have killed it, or holds it. */
async function isTold(url: string, body: unknown): Promise<boolean> {
  const signal = AbortSignal.timeout(toldWithinMs);
  return fetch(url, { method: 'POST', body: JSON.stringify(body), signal }).then(
    ({ ok }) => ok,
    () => false,
  );
}

const engineFault = (name: string, fault: FakeFaults): Fault => ({
  name,
  begin: async ({ engine }) => {
    const tell = (faults: FakeFaults) => isTold(`${engine}/fake/settings`, { faults });
    await tell(fault);
    return async () => {
      await until(() => tell({}), { what: 'The engine is told that all is well', timeoutMs: 60_000 });
    };
  },
});

const forgets: Fault = {
  name: 'the engine forgets',
  begin: async ({ engine }) => {
    await isTold(`${engine}/fake/forget`, {});
    return () => Promise.resolve();
  },
};

const empties: Fault = {
  name: 'Valkey is emptied',
  begin: async ({ valkey }) => {
    const logger = createLogger({ service: 'test', level: 'silent' });
    const client = connectValkey({ url: valkey, name: 'test', logger });
    // Another fault may hold it: then it is as good as empty already.
    await until(() => client.status === 'ready', { what: 'A connection to Valkey' })
      .then(() => client.flushall())
      .catch(() => undefined);
    client.disconnect();
    return () => Promise.resolve();
  },
};

export const faults: readonly [Fault, ...Fault[]] = [
  forgets,
  empties,
  ...[...services, ...others].flatMap((name) => [killed(name), stands(name)]),
  ...Object.entries(engineFaults).map(([name, fault]) => engineFault(name, fault)),
];
