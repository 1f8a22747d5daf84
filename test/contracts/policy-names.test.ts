// Policies have the same names wherever they go: each service of a machine gets them under the variable that it reads.
import { loadSecrets, machineProcesses, openDataFolder, portsFrom } from '@backtalk/deploy';
import { readConfig } from '@backtalk/kit';
import { repositoryRoot, TemporaryDirectory } from '@backtalk/kit/testing';
import { afterAll, expect, it } from 'vitest';
import { settingsOfService } from '../chart/contract.js';

const folder = new TemporaryDirectory('policy-names');

afterAll(() => {
  folder.remove();
});

it.each(['gateway', 'trainer', 'publisher', 'loader'])(
  'policies of other names than the usual reach the %s',
  async (name) => {
    const data = openDataFolder(folder.join(name));
    const { services } = machineProcesses({
      root: repositoryRoot(),
      data,
      ports: portsFrom(34_000),
      host: '127.0.0.1',
      secrets: loadSecrets(data.path),
      model: '',
      policies: ['parley', 'ada'],
      environment: {},
    });
    const environment = services.find((spec) => spec.name === name)?.env;
    const config: Readonly<Record<string, unknown>> = readConfig(await settingsOfService(name), environment);
    expect(config['policies']).toEqual(['parley', 'ada']);
  },
);
