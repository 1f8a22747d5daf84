import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { vllmProgram } from '@backtalk/deploy';
import { pairsOf, tokenVariable } from '@backtalk/kit';
import { repositoryRoot } from '@backtalk/kit/testing';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';

const part = z
  .object({
    image: z.string().optional(),
    command: z.array(z.string()).optional(),
    environment: z.record(z.string(), z.string()).default({}),
    volumes: z.array(z.string()).default([]),
    depends_on: z.union([z.array(z.string()), z.record(z.string(), z.unknown())]).optional(),
    read_only: z.boolean().optional(),
    cap_drop: z.array(z.string()).optional(),
    security_opt: z.array(z.string()).optional(),
    healthcheck: z.unknown().optional(),
    build: z.looseObject({ dockerfile: z.string().optional() }).nullish(),
  })
  .loose();
const compose = z
  .object({
    services: z.record(z.string(), part),
    volumes: z.record(z.string(), z.unknown()).default({}),
    configs: z.record(z.string(), z.object({ content: z.string() })).default({}),
  })
  .loose();

function read(name: string): z.infer<typeof compose> {
  const text = readFileSync(join(repositoryRoot(), 'deploy', name), 'utf8');
  return compose.parse(parse(text, { merge: true, customTags: [{ tag: '!reset', resolve: () => null }] }));
}

const whole = read('compose.yaml');
const gpu = read('compose.gpu.yaml');
const tinker = read('compose.tinker.yaml');

/** Every variable that the README of a part says it reads; the READMEs are checked against the code elsewhere. */
function readBy(readme: string): Set<string> {
  const text = readFileSync(join(repositoryRoot(), readme), 'utf8');
  return new Set(text.match(/\bBACKTALK_[A-Z0-9_]+\b/g));
}

const readmes: Readonly<Record<string, string>> = {
  streams: 'services/cli/README.md',
  commands: 'services/cli/README.md',
  checkpoints: 'services/cli/README.md',
  engine: 'services/worker/README.md',
  training: 'services/worker/README.md',
};

describe.each([
  ['compose.yaml', whole],
  ['compose.gpu.yaml', gpu],
  ['compose.tinker.yaml', tinker],
])('%s', (_, file) => {
  const withSettings = Object.entries(file.services).filter(([, { environment }]) =>
    Object.keys(environment).some((variable) => variable.startsWith('BACKTALK_')),
  );

  it.each(withSettings)('sets for %s only variables that it reads', (name, { environment }) => {
    const known = readBy(readmes[name] ?? `services/${name}/README.md`);
    const set = Object.keys(environment).filter((variable) => variable.startsWith('BACKTALK_'));
    expect(set.filter((variable) => !known.has(variable))).toEqual([]);
  });

  it('gives no secret as an argument, which stands in the machine’s list of processes', () => {
    const given = Object.values(file.services).flatMap(({ command = [] }) => command);
    expect(given.filter((argument) => /\$\{\w*(PASSWORD|SECRET|TOKEN|KEY)\b/.test(argument))).toEqual([]);
  });

  it('mounts only volumes that it declares, and folders that the environment names', () => {
    const named = Object.values(file.services).flatMap(({ volumes }) => volumes.map((volume) => volume.split(':')[0]));
    const known = new Set([...Object.keys(whole.volumes), undefined]);
    expect(named.filter((name) => name !== undefined && !name.startsWith('$') && !known.has(name))).toEqual([]);
  });
});

const readmeOf = (service: string) => join(repositoryRoot(), 'services', service, 'README.md');

describe('compose.yaml', () => {
  const ours = Object.entries(whole.services).filter(([, { image = '' }]) => image.startsWith('backtalk/'));

  it('starts every part, and waits only for parts that there are', () => {
    const wanted = [
      'nats',
      'valkey',
      'streams',
      'commands',
      'gateway',
      'collector',
      'judge',
      'trainer',
      'publisher',
      'loader',
    ];
    expect(Object.keys(whole.services)).toEqual(expect.arrayContaining([...wanted, 'engine', 'training']));
    for (const { depends_on: before = [] } of Object.values(whole.services)) {
      const names = Array.isArray(before) ? before : Object.keys(before);
      expect(names.filter((name) => whole.services[name] === undefined)).toEqual([]);
    }
  });

  it('runs our images read-only and without capabilities', () => {
    const confined = { read_only: true, cap_drop: ['ALL'], security_opt: ['no-new-privileges:true'] };
    for (const [name, container] of ours) expect(container, name).toMatchObject(confined);
  });

  it('asks every part but those that end whether it is healthy', () => {
    const unasked = Object.entries(whole.services).filter(([, { healthcheck }]) => healthcheck === undefined);
    expect(unasked.map(([name]) => name)).toEqual(['streams', 'commands']);
  });

  it.each(ours)(
    'mounts the writable volumes of %s over folders that its user may write to',
    (_, { build, volumes }) => {
      const recipe = readFileSync(join(repositoryRoot(), build?.dockerfile ?? ''), 'utf8');
      const writable = volumes.filter((volume) => !volume.endsWith(':ro')).map((volume) => volume.split(':')[1] ?? '');
      expect(writable.filter((path) => !recipe.includes(`/volumes${path} `))).toEqual([]);
      expect(recipe).toContain('chown 10001:0 /volumes/*');
    },
  );

  it.each(ours.filter(([name]) => existsSync(readmeOf(name))))(
    'tells %s where the others are, and gives it the engines’ key where it asks engines',
    (name, { environment }) => {
      const rows = readFileSync(readmeOf(name), 'utf8').matchAll(/^\| `(BACKTALK_\w+)` +\| (\S+)/gm);
      const wanted = [...rows].flatMap(([, variable = '', standard = '']) =>
        variable === 'BACKTALK_ENGINE_KEY' || standard.includes('127.0.0.1') ? [variable] : [],
      );
      expect(Object.keys(environment)).toEqual(expect.arrayContaining(wanted));
    },
  );

  it('gives a part the tokens of the calls that it makes and answers, and no others', () => {
    for (const [name, { environment }] of ours) {
      const given = Object.entries(environment).filter(([variable]) => variable.endsWith('_TOKEN'));
      const called = name === 'commands' ? 'cli' : name;
      expect(given.map(([variable]) => variable).sort(), name).toEqual(pairsOf(called).map(tokenVariable).sort());
      for (const [variable, value] of given) expect(value).toMatch(new RegExp(`^\\$\\{${variable}[:}]`));
    }
  });

  it('opens its stores to passwords alone, and shows their state to no other container', () => {
    const [nats, valkey] = ['nats', 'valkey'].map((name) => whole.configs[name]?.content ?? '');
    expect(valkey).toBe('requirepass ${BACKTALK_VALKEY_PASSWORD}\n');
    expect(whole.services['valkey']?.command).toContain('/etc/valkey/valkey.conf');
    expect(nats).toContain('http: "127.0.0.1:8222"\n');
    const urls = ours.flatMap(([, { environment }]) => environment['BACKTALK_VALKEY_URL'] ?? []);
    expect(new Set(urls)).toEqual(new Set(['redis://:${BACKTALK_VALKEY_PASSWORD}@valkey:6379']));
  });

  it('writes no secret down', () => {
    const secrets = ours.flatMap(([, { environment }]) =>
      Object.entries(environment).filter(([variable]) => /PASSWORD|SECRET|TOKEN|KEY$/.test(variable)),
    );
    expect(secrets.filter(([, value]) => !value.startsWith('${'))).toEqual([]);
  });

  it('advertises names that other containers resolve, where a part listens on all addresses', () => {
    for (const [name, { environment }] of ours) {
      if (environment['BACKTALK_GRPC_ADDRESS'] === undefined || name === 'training') continue;
      expect(environment['BACKTALK_GRPC_ADVERTISED']).toMatch(new RegExp(`^${name}:\\d+$`));
    }
  });
});

it('judge and trainer in Compose ask a model of one’s own in words', () => {
  for (const name of ['judge', 'trainer'])
    expect(gpu.services[name]?.environment, name).toMatchObject({ BACKTALK_JUDGE_BACKEND: 'free' });
});

it('containers on cards see the ones that a plan gives them, and one card where there is no plan', () => {
  const cards = { engine: 'SERVING', 'judge-engine': 'JUDGE', training: 'TRAINING' };
  for (const [name, role] of Object.entries(cards))
    expect(gpu.services[name]?.environment, name).toMatchObject({
      CUDA_DEVICE_ORDER: 'PCI_BUS_ID',
      CUDA_VISIBLE_DEVICES: `\${BACKTALK_${role}_CARDS:-0}`,
    });
});

it('an engine that judges alone is another model’s, and starts where a plan has one', () => {
  const judge = gpu.services['judge-engine'];
  expect(judge).toMatchObject({ profiles: ['judge'] });
  expect(judge?.command).not.toContain('--enable-lora');
  for (const name of ['judge', 'trainer'])
    expect(gpu.services[name]?.environment['BACKTALK_ENGINE_HOSTS'], name).toBe('engine,judge-engine');
});

it('vLLM in Compose has the flags for swaps that a start on one machine gives it', () => {
  const { command = [], environment = {} } = gpu.services['engine'] ?? {};
  expect(command).toEqual(expect.arrayContaining(vllmProgram.swapFlags));
  expect(environment).toMatchObject(vllmProgram.swapEnvironment);
});

it('a training service in Compose gets steps that it can take, from answers that it can learn from', () => {
  const [gateway, trainer, training] = ['gateway', 'trainer', 'training'].map((name) => tinker.services[name]);
  expect(gateway?.environment['BACKTALK_TEMPERATURE']).toBe('1');
  expect(trainer?.environment).toMatchObject({ BACKTALK_TRAINING_BACKEND: 'tinker', BACKTALK_RECIPE: 'remote' });
  expect(training?.environment).toMatchObject({ BACKTALK_TRAINING_BACKEND: 'tinker', BACKTALK_DEVICE: 'cpu' });
  expect(Object.keys(training?.environment ?? {})).toEqual(
    expect.arrayContaining([...readBy('services/worker/README.md')].filter((name) => /_TINKER_/.test(name))),
  );
});
