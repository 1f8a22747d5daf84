// A further gateway beside a machine's own, so that "the last gateway" of a swap is not the only one.

import { join } from 'node:path';
import { answersOk, loadSecrets, machineProcesses } from '@backtalk/deploy';
import { inheritedEnvironment } from '@backtalk/kit';
import { freePort } from '@backtalk/kit/testing';
import { root, type TestMachine } from '../loop/machine.js';
import { benchErrors } from './errors.js';
import { startProgram, type Program } from './programs.js';

export async function startSecondGateway({ data, ports }: TestMachine): Promise<Program> {
  const [endpoint, grpc, health] = await Promise.all([freePort(), freePort(), freePort()]);
  const { services } = machineProcesses({
    ...{ root, data, ports, host: '127.0.0.1', secrets: loadSecrets(data.path) },
    ...{ natsConfig: '', model: '', environment: inheritedEnvironment() },
  });
  const first = services.find(({ name }) => name === 'gateway');
  if (first === undefined) throw benchErrors.unreadable({ what: 'The list of processes' });
  const env = {
    ...first.env,
    BACKTALK_INSTANCE: 'gateway-2',
    BACKTALK_LISTEN: `127.0.0.1:${String(endpoint)}`,
    BACKTALK_GRPC_ADDRESS: `127.0.0.1:${String(grpc)}`,
    BACKTALK_HEALTH_ADDRESS: `127.0.0.1:${String(health)}`,
    BACKTALK_SPOOL_DIR: join(data.path, 'spool-2'),
  };
  return startProgram({
    ...{ ...first, name: 'gateway-2', env },
    ready: () => answersOk(`http://127.0.0.1:${String(health)}/readyz`),
  });
}
