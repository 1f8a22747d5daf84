// On one machine the engine serves clients and judges: it opens to two keys, and the judge is given the one that loads no adapter.
import { loadSecrets, machineProcesses, openDataFolder, portsFrom } from '@backtalk/deploy';
import { repositoryRoot, TemporaryDirectory } from '@backtalk/kit/testing';
import { afterAll, expect, it } from 'vitest';

const folder = new TemporaryDirectory('engine-keys');

afterAll(() => {
  folder.remove();
});

function keysOf(environment: Readonly<Record<string, string>>) {
  const data = openDataFolder(folder.join('data'));
  const secrets = loadSecrets(data.path);
  const { workers, services } = machineProcesses({
    root: repositoryRoot(),
    data,
    ports: portsFrom(24_000),
    host: '127.0.0.1',
    secrets,
    model: '',
    policies: ['parley'],
    environment,
  });
  const given = (name: string, variable = 'BACKTALK_ENGINE_KEY') =>
    [...workers, ...services].find((spec) => spec.name === name)?.env[variable];
  return { secrets, given };
}

it('the judge of one machine has a key of its own, which its engine tells from the one that loads adapters', () => {
  const { secrets, given } = keysOf({});
  expect(secrets.judgeEngineKey).not.toBe(secrets.engineKey);
  expect(given('judge')).toBe(secrets.judgeEngineKey);
  expect(given('engine', 'BACKTALK_ENGINE_JUDGE_KEY')).toBe(secrets.judgeEngineKey);
  for (const name of ['engine', 'gateway', 'loader', 'publisher', 'trainer'])
    expect(given(name), name).toBe(secrets.engineKey);
});

it('engines that the operator names for the judge get the operator’s key', () => {
  const environment = { BACKTALK_JUDGE_URL: 'http://judges:8000', BACKTALK_ENGINE_KEY: 'of the operator' };
  expect(keysOf(environment).given('judge')).toBe('of the operator');
});
