// On one machine every two parts that call each other have a secret of their own, which no third part is given.
import { loadSecrets, machineProcesses, openDataFolder, portsFrom } from '@backtalk/deploy';
import { callPairs, pairsOf, tokenVariable } from '@backtalk/kit';
import { repositoryRoot, TemporaryDirectory } from '@backtalk/kit/testing';
import { afterAll, expect, it } from 'vitest';

const folder = new TemporaryDirectory('call-tokens');

afterAll(() => {
  folder.remove();
});

it('a part of one machine has the tokens of the calls that it makes and answers, and no others', () => {
  const data = openDataFolder(folder.join('data'));
  const secrets = loadSecrets(data.path);
  const { servers, workers, services } = machineProcesses({
    root: repositoryRoot(),
    data,
    ports: portsFrom(24_000),
    host: '127.0.0.1',
    secrets,
    model: '',
    policies: ['parley'],
    environment: {},
  });
  expect(new Set(Object.values(secrets.callTokens)).size).toBe(callPairs.length);
  for (const { name, args, env } of [...servers, ...workers, ...services]) {
    const part = name === 'training-worker' ? 'training' : name;
    const own = new Map(pairsOf(part).map((pair) => [tokenVariable(pair), secrets.callTokens[pair]]));
    const tokens = new Set(Object.values(secrets.callTokens));
    const held = Object.entries(env).filter(([variable, value]) => variable.endsWith('_TOKEN') || tokens.has(value));
    expect(new Map(held), name).toEqual(own);
    expect(args.filter((argument) => tokens.has(argument))).toEqual([]);
  }
});
