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
    stopSignal().addEventListener('abort', () => console.log('heard'));
    setInterval(() => undefined, 1_000);
    console.log('waits');`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], { timeout: 60_000 });
  const said = () => once(child.stdout, 'data').then(([data]: Buffer[]) => String(data).trim());
  expect(await said()).toBe('waits');
  child.kill('SIGINT');
  expect(await said()).toBe('heard');
  child.kill('SIGINT');
  expect(await once(child, 'exit')).toEqual([130, null]);
});
