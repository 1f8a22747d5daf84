import { PassThrough } from 'node:stream';
import { TemporaryDirectory } from '@backtalk/kit/testing';
import { expect, it } from 'vitest';
import { ProcessRecord } from './process-record.js';
import { Supervisor } from './supervisor.js';
import { createTerminal } from './terminal.js';

it('a machine that was stopped while its start was prepared starts nothing', async () => {
  const folder = new TemporaryDirectory('supervisor');
  const terminal = createTerminal(new PassThrough().resume());
  const supervisor = new Supervisor(folder.path, terminal, new ProcessRecord(folder.join('processes.json')));
  await supervisor.stop();
  await supervisor.start([
    {
      name: 'part',
      command: 'sleep',
      args: ['60'],
      env: { PATH: '/usr/bin:/bin' },
      ready: () => Promise.resolve(true),
      readyWithinMs: 2_000,
      stopSignal: 'SIGTERM',
    },
  ]);
  expect(supervisor.pid('part')).toBeUndefined();
  supervisor.killAll();
  folder.remove();
});
