// What the chart gives its processes is what they read: names, values, ports and secrets, asked of their own code.
import { tracingSettings } from '@backtalk/kit';
import { describe, expect, it } from 'vitest';
import { complaintsOfWorker } from './contract.js';
import { environmentOf } from './environment.js';
import { render, valuesFiles, type Values } from './helm.js';
import { containersOf, podsOf } from './pods.js';
import { complaintsAbout, facts, services, startedIn } from './started-in.js';

function backtalkVariables(environment: Readonly<Record<string, string>>): string[] {
  return Object.keys(environment).filter((name) => name.startsWith('BACKTALK_'));
}

describe.each(valuesFiles)('with %s', (file) => {
  const started = startedIn(render({}, [file]));

  it('every process of ours is there', () => {
    expect(new Set(started.map(({ container }) => container.name))).toEqual(
      new Set([...services, 'training', 'streams', 'commands', ...(isWithBuiltin(file) ? ['engine'] : [])]),
    );
  });

  it('every variable is one that the process reads', () => {
    const unread = started.flatMap(({ container, contract, environment }) =>
      backtalkVariables(environment)
        .filter((name) => !contract.variables.has(name))
        .map((name) => `${container.name} does not read ${name}`),
    );
    expect(unread).toEqual([]);
  });

  it('every variable that a process needs is there', () => {
    const missing = started.flatMap(({ container, contract, environment }) =>
      [...contract.required].filter((name) => !(name in environment)).map((name) => `${container.name}: ${name}`),
    );
    expect(missing).toEqual([]);
  });

  it('every process would take its values', () => {
    const refused = complaintsAbout(render({}, [file]));
    expect(refused).toEqual([]);
  });

  it('spans go where the values say, under the name that the kit reads', () => {
    for (const { container, environment } of started) {
      if (!isService(container.name)) continue;
      const { variable } = tracingSettings.otlpEndpoint;
      expect(environment[variable]).toBe(/external/.test(file) ? 'http://collector.observability:4318' : undefined);
    }
  });

  it('no variable is given twice', () => {
    for (const { container } of started) {
      const names = container.env.map(({ name }) => name);
      expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([]);
    }
  });

  it('the ports of a container are those that its environment opens', () => {
    for (const { container, environment } of started) {
      const named = container.ports.map(({ containerPort }) => containerPort).sort();
      expect([container.name, ...named]).toEqual([container.name, ...opened(environment).sort()]);
    }
  });

  it('probes ask ports that are there', () => {
    for (const { container } of started) {
      const asked = JSON.stringify([container.startupProbe, container.livenessProbe, container.readinessProbe]);
      for (const [, port] of asked.matchAll(/"port":"(\w+)"/g)) {
        expect(container.ports.map(({ name }) => name)).toContain(port);
      }
    }
  });

  it('files and folders that variables name lie where something is mounted', () => {
    for (const { container, environment } of started) {
      const folders = container.volumeMounts.map(({ mountPath }) => mountPath);
      const paths = Object.entries(environment).filter(([name, value]) => isPath(name) && value.startsWith('/'));
      for (const [name, path] of paths) {
        expect(
          folders.some((folder) => path.startsWith(folder)),
          `${container.name} ${name}=${path}`,
        ).toBe(true);
      }
    }
  });
});

/** What a value becomes may differ from part to part: each level of the log, and lengths with many digits. */
const further: readonly Values[] = ['debug', 'info', 'warn', 'error'].map((logLevel) => ({
  logLevel,
  model: { lengthMax: 2_097_152 },
}));

it.each(['engine', 'training'] as const)(
  'the %s would take its values in all of them',
  (part) => {
    const releases = [...valuesFiles.map((file) => render({}, [file])), ...further.map((values) => render(values))];
    const own = releases.flatMap((objects) => startedIn(objects)).filter(({ container }) => container.name === part);
    const broken = { BACKTALK_LOG_LEVEL: 'loud' };
    const complaints = complaintsOfWorker(part, [...own.map(({ environment }) => environment), broken]);
    expect(complaints.slice(0, -1)).toEqual(own.map(() => ''));
    expect(complaints.at(-1)).toContain('BACKTALK_LOG_LEVEL');
  },
  120_000,
);

it('numbers reach every process with all their digits', () => {
  const env = { BACKTALK_WHOLE: 2_000_000, BACKTALK_PART: 0.25, BACKTALK_TEXT: '007', BACKTALK_IS: true };
  const objects = render({ gateway: { env }, loader: { env }, pools: { serving: { env }, training: { env } } });
  const containers = podsOf(objects).flatMap(containersOf);
  const written = containers.filter((one) => one.env.some(({ name }) => name in env));
  expect(written.map(({ name }) => name).sort()).toEqual(['engine', 'gateway', 'loader', 'training']);
  for (const container of written) {
    expect(environmentOf(container, facts)).toMatchObject({
      BACKTALK_WHOLE: '2000000',
      BACKTALK_PART: '0.25',
      BACKTALK_TEXT: '007',
      BACKTALK_IS: 'true',
    });
  }
});

function isService(name: string): boolean {
  return services.some((service) => service === name);
}

function isPath(name: string): boolean {
  return /_(DIR|FILE|MODEL|MODEL_DIR)$/.test(name);
}

function isWithBuiltin(file: string): boolean {
  return !/gpu|models/.test(file);
}

/** Ports of variables that say where a process listens. */
function opened(environment: Readonly<Record<string, string>>): number[] {
  const listening = /^BACKTALK_(LISTEN|GRPC_ADDRESS|HEALTH_ADDRESS)$/;
  const addresses = Object.entries(environment).filter(([name]) => listening.test(name));
  const engine = environment['BACKTALK_ENGINE_PORT'];
  return [
    ...addresses.map(([, address]) => Number(address.split(':').at(-1))),
    ...(engine === undefined ? [] : [Number(engine)]),
  ];
}
