import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { repositoryRoot } from '@backtalk/kit/testing';
import { expect, it } from 'vitest';

it('a command whose reader goes away before it has printed all ends without a complaint', async () => {
  const main = join(repositoryRoot(), 'services/cli/dist/main.js');
  const command = spawn(process.execPath, [main, 'recipe'], { stdio: ['ignore', 'pipe', 'pipe'], timeout: 30_000 });
  command.stdout.destroy();
  let complaint = '';
  command.stderr.on('data', (data: Buffer) => (complaint += data.toString()));
  const [status] = (await once(command, 'close')) as [number];
  expect([status, complaint]).toEqual([0, '']);
});

it('an option that names a person or a tenant is not empty', async () => {
  const main = join(repositoryRoot(), 'services/cli/dist/main.js');
  const command = spawn(process.execPath, [main, 'keys', 'add', '--user', ''], { timeout: 30_000 });
  let complaint = '';
  command.stderr.on('data', (data: Buffer) => (complaint += data.toString()));
  const [status] = (await once(command, 'close')) as [number];
  expect([status, complaint]).toEqual([
    2,
    expect.stringContaining("'--user <name>' argument '' is invalid. A name is needed."),
  ]);
});
