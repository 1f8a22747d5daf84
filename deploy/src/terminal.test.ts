import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { expect, it } from 'vitest';

const module = new URL('../dist/terminal.js', import.meta.url).href;
const program = `
  const { createTerminal } = await import(${JSON.stringify(module)});
  const terminal = createTerminal(process.stdout);
  process.stderr.write('here\\n');
  for await (const _ of process.stdin) terminal.step('a word');
  terminal.warn('a last word');
  process.stderr.write('lives\\n');`;

it.each([
  ['pipe that nobody reads any more', ''],
  ['file on a full disk', '> /dev/full'],
])('words that a %s does not take are lost, and the process that says them lives', async (_, redirected) => {
  const speaks = ['-c', `exec "$0" "$@" ${redirected}`, process.execPath, '--input-type=module', '-e', program];
  const speaker = spawn('sh', speaks);
  const ended = once(speaker, 'exit');
  const said = text(speaker.stderr);
  await once(speaker.stdout.destroy(), 'close');
  speaker.stdin.end('speak');
  expect(await ended).toEqual([0, null]);
  expect(await said).toBe('here\nlives\n');
});
