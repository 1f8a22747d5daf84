import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
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

it('a command whose words find no room on the disk says so in one line, and fails', async () => {
  const main = join(repositoryRoot(), 'services/cli/dist/main.js');
  const full = openSync('/dev/full', 'w');
  const command = spawn(process.execPath, [main, 'recipe'], { stdio: ['ignore', full, 'pipe'], timeout: 30_000 });
  let complaint = '';
  command.stderr?.on('data', (data: Buffer) => (complaint += data.toString()));
  const [status] = (await once(command, 'close')) as [number];
  closeSync(full);
  expect(status).toBe(1);
  expect(complaint).toBe('What is printed cannot be written: ENOSPC: no space left on device, write\n');
});

it('a word that is no command of a group is named, with those that there are', async () => {
  const main = join(repositoryRoot(), 'services/cli/dist/main.js');
  const run = spawn(process.execPath, [main, 'lessons', 'ad', 'x'], { timeout: 30_000 });
  let complaint = '';
  run.stderr.on('data', (data: Buffer) => (complaint += data.toString()));
  const [status] = (await once(run, 'close')) as [number];
  expect(status).toBe(2);
  expect(complaint).toContain("error: unknown command 'lessons ad': there is list, show, add, edit, retire");
});

it.each([
  ['keys add --user', 'user <name>', 'A name is needed.'],
  ['feedback turn_1 --correction', 'correction <words>', 'Words are needed.'],
])('an option that says something is not empty: %s', async (command, option, wanted) => {
  const main = join(repositoryRoot(), 'services/cli/dist/main.js');
  const run = spawn(process.execPath, [main, ...command.split(' '), ''], { timeout: 30_000 });
  let complaint = '';
  run.stderr.on('data', (data: Buffer) => (complaint += data.toString()));
  const [status] = (await once(run, 'close')) as [number];
  expect(status).toBe(2);
  expect(complaint).toContain(`'--${option}' argument '' is invalid. ${wanted}`);
});

it('a command starts without what only others need', async () => {
  const main = join(repositoryRoot(), 'services/cli/dist/main.js');
  const hook = `import { writeSync } from 'node:fs';
    export function load(url, context, next) { writeSync(2, url + '\\n'); return next(url, context); }`;
  const asUrl = (program: string) => `data:text/javascript,${encodeURIComponent(program)}`;
  const hooked = asUrl(`import { register } from 'node:module'; register(${JSON.stringify(asUrl(hook))});`);
  const help = spawn(process.execPath, ['--import', hooked, main, '--help'], { timeout: 30_000 });
  let loaded = '';
  help.stderr.on('data', (data: Buffer) => (loaded += data.toString()));
  const [status] = (await once(help, 'close')) as [number];
  expect(status).toBe(0);
  expect(loaded).toContain('/node_modules/commander/');
  for (const heavy of ['@grpc/grpc-js', 'openai', 'bullmq', 'ioredis'])
    expect(loaded).not.toContain(`/node_modules/${heavy}/`);
});
