import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { repositoryRoot } from '@backtalk/kit/testing';
import { expect, it } from 'vitest';

it('a command that does not end when it is interrupted ends when it is interrupted again', async () => {
  const file = pathToFileURL(join(repositoryRoot(), 'services/cli/dist/stop-signal.js')).href;
  const program = `
    const { stopSignal } = await import(${JSON.stringify(file)});
    const times = [0, 500, 1_500];
    stopSignal(() => times.shift());
    process.on('SIGINT', () => console.log('heard'));
    setInterval(() => undefined, 1_000);
    console.log('waits');`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], { timeout: 60_000 });
  const said = () => once(child.stdout, 'data').then(([data]: Buffer[]) => String(data).trim());
  expect(await said()).toBe('waits');
  // npm passes on what the terminal has sent already.
  for (const time of [1, 2]) {
    child.kill('SIGINT');
    expect([time, await said()]).toEqual([time, 'heard']);
  }
  child.kill('SIGINT');
  expect(await once(child, 'exit')).toEqual([130, null]);
});
