import { PassThrough, Writable } from 'node:stream';
import { TemporaryDirectory } from '@backtalk/kit/testing';
import { expect, it } from 'vitest';
import type { ProcessSpec } from './child.js';
import { ProcessRecord } from './process-record.js';
import { Supervisor } from './supervisor.js';
import { createTerminal } from './terminal.js';

const part: ProcessSpec = {
  name: 'part',
  command: 'sleep',
  args: ['60'],
  env: { PATH: '/usr/bin:/bin' },
  ready: () => Promise.resolve(true),
  readyWithinMs: 2_000,
  stopSignal: 'SIGTERM',
};

it('a machine that was stopped while its start was prepared starts nothing', async () => {
  const folder = new TemporaryDirectory('supervisor');
  const terminal = createTerminal(new PassThrough().resume());
  const supervisor = new Supervisor(folder.path, terminal, new ProcessRecord(folder.join('processes.json')));
  await supervisor.stop();
  await supervisor.start([part]);
  expect(supervisor.pid('part')).toBeUndefined();
  supervisor.killAll();
  folder.remove();
});

it('a process that a start is stopped for before it serves is not said to serve', async () => {
  const folder = new TemporaryDirectory('supervisor');
  const said: string[] = [];
  const screen = new Writable({
    write: (text: Buffer, _encoding, done) => {
      said.push(text.toString());
      done();
    },
  });
  const record = new ProcessRecord(folder.join('processes.json'));
  const supervisor = new Supervisor(folder.path, createTerminal(screen), record);
  let look = (): void => undefined;
  const looked = new Promise<void>((resolve) => (look = resolve));
  const ready = () => {
    look();
    return Promise.resolve(false);
  };
  const starting = supervisor.start([part, { ...part, name: 'late', ready, readyWithinMs: 20_000 }]);
  await looked;
  await supervisor.stop();
  await starting;
  expect(said.join('').match(/\w+ serves/g)).toEqual(['part serves']);
  folder.remove();
});
