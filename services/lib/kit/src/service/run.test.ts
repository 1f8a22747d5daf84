import { describe, expect, it } from 'vitest';
import { setting } from '../config/setting.js';
import { kitErrors } from '../errors/backtalk-error.js';
import { type Host, type HostEvent, run, type RunContext, type Service } from './run.js';

class FakeHost implements Host {
  readonly printed: string[] = [];
  readonly complaints: string[] = [];
  readonly exits: number[] = [];
  private readonly listeners = new Map<HostEvent, (reason: unknown) => void>();

  constructor(
    readonly environment: Readonly<Record<string, string>> = { BACKTALK_PORT: '80', BACKTALK_LOG_LEVEL: 'silent' },
    readonly arguments_: readonly string[] = [],
  ) {}

  get arguments(): readonly string[] {
    return this.arguments_;
  }

  on(event: HostEvent, listener: (reason: unknown) => void): void {
    this.listeners.set(event, listener);
  }

  raise(event: HostEvent, reason?: unknown): void {
    this.listeners.get(event)?.(reason);
  }

  print(text: string): void {
    this.printed.push(text);
  }

  complain(text: string): void {
    this.complaints.push(text);
  }

  exit(code: number): void {
    this.exits.push(code);
  }
}

const config = {
  port: setting.integer('BACKTALK_PORT', { description: 'Where it listens.' }),
  logLevel: setting.oneOf('BACKTALK_LOG_LEVEL', ['info', 'silent'], { description: 'How much it says.' }),
};

interface Recorded {
  readonly steps: string[];
  readonly started: Promise<RunContext>;
  readonly ended: Promise<void>;
}

function start(host: FakeHost, parts: Partial<Service> = {}): Recorded {
  const steps: string[] = [];
  let onStarted: (context: RunContext) => void = () => undefined;
  const started = new Promise<RunContext>((resolve) => {
    onStarted = resolve;
  });
  const create = ({ port }: { readonly port: number }, context: RunContext): Service => ({
    start: async () => {
      steps.push(`start on ${port}`);
      await parts.start?.();
      onStarted(context);
    },
    stop: async () => {
      steps.push('stop');
      await parts.stop?.();
    },
  });
  return { steps, started, ended: run({ name: 'test', config, create }, host) };
}

describe('run', () => {
  it('starts with the configuration, and on SIGTERM stops and exits 0', async () => {
    const host = new FakeHost();
    const { steps, started, ended } = start(host);
    await started;
    host.raise('SIGTERM');
    await ended;
    expect(steps).toEqual(['start on 80', 'stop']);
    expect(host.exits).toEqual([0]);
  });

  it('prints every variable for --help and starts nothing', async () => {
    const host = new FakeHost({}, ['--help']);
    const { steps, ended } = start(host);
    await ended;
    expect(host.printed.join()).toContain('BACKTALK_PORT');
    expect(host.exits).toEqual([0]);
    expect(steps).toEqual([]);
  });

  it('names the bad variable and starts nothing when the configuration is not valid', async () => {
    const host = new FakeHost({ BACKTALK_PORT: 'x', BACKTALK_LOG_LEVEL: 'silent' });
    const { steps, ended } = start(host);
    await ended;
    expect(host.complaints.join()).toContain('BACKTALK_PORT');
    expect(host.exits).toEqual([2]);
    expect(steps).toEqual([]);
  });

  it('stops what had started and exits 1 when the start fails', async () => {
    const host = new FakeHost();
    const { steps, ended } = start(host, { start: () => Promise.reject(kitErrors.internal()) });
    await ended;
    expect(steps).toEqual(['start on 80', 'stop']);
    expect(host.exits).toEqual([1]);
  });

  it('stops and exits 1 when the service says that it cannot go on', async () => {
    const host = new FakeHost();
    const { steps, started, ended } = start(host);
    (await started).fail(kitErrors.internal());
    await ended;
    expect(steps).toEqual(['start on 80', 'stop']);
    expect(host.exits).toEqual([1]);
  });

  it('exits 1 when the stop fails', async () => {
    const host = new FakeHost();
    const { started, ended } = start(host, { stop: () => Promise.reject(kitErrors.internal()) });
    await started;
    host.raise('SIGINT');
    await ended;
    expect(host.exits).toEqual([1]);
  });

  it('ends at once on a second signal, although the stop hangs', async () => {
    const host = new FakeHost();
    const { started } = start(host, { stop: () => new Promise<void>(() => undefined) });
    await started;
    host.raise('SIGTERM');
    host.raise('SIGTERM');
    expect(host.exits).toEqual([130]);
  });

  it.each(['unhandledRejection', 'uncaughtException'] as const)('ends the process on an %s', async (event) => {
    const host = new FakeHost();
    const { started } = start(host);
    await started;
    host.raise(event, new TypeError('nobody caught it'));
    expect(host.exits).toEqual([1]);
  });
});
