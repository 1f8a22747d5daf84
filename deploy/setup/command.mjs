// Runs one command of the set-up, shows its last line as progress, and keeps the whole output in a log file.

import { spawn } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { beginStep } from './terminal.mjs';
import { SetupRefusal } from './refusal.mjs';

const tailLines = 12;

const explanations = [
  [
    /ENOSPC|No space left on device/i,
    'the disk is full: free some space (a first start needs about 4 GB) and start again',
  ],
  [
    /ENOTFOUND|EAI_AGAIN|Temporary failure in name resolution|ConnectionError|ECONNREFUSED/i,
    'a package registry cannot be reached: check the network or the proxy settings and start again',
  ],
  [/EACCES|Permission denied/i, 'a file or folder may not be written: run from a checkout that you own'],
];

/** Resolves to the command's output; throws SetupRefusal with one line and the log's path when it fails. */
export async function runStep(label, command, args, { root, logFile }, env = {}) {
  const step = beginStep(label);
  const log = createWriteStream(logFile, { flags: 'a' });
  // A disk without room takes no log; the step's own failure is what is said.
  log.on('error', () => undefined);
  log.write(`\n$ ${command} ${args.join(' ')}\n`);
  const child = spawn(command, args, { cwd: root, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  const take = (chunk) => {
    const text = chunk.toString();
    log.write(text);
    output = (output + text).slice(-200_000);
    const line = text.split(/[\r\n]+/).findLast((part) => part.trim() !== '' && !part.startsWith('WARNING'));
    if (line !== undefined) step.progress(line);
  };
  child.stdout.on('data', take);
  child.stderr.on('data', take);
  const code = await new Promise((resolve) => {
    child.on('error', (error) => {
      output += String(error);
      resolve(127);
    });
    child.on('close', (status, signal) => resolve(status ?? (signal === 'SIGINT' ? 130 : 1)));
  });
  await new Promise((resolve) => log.end(resolve));
  if (code === 0) {
    step.done();
    return output;
  }
  step.failed();
  const tail = output.split('\n').slice(-tailLines).join('\n');
  const why =
    explanations.find(([pattern]) => pattern.test(tail))?.[1] ??
    `${command} ended with status ${code}; its last words:\n${tail}`;
  throw new SetupRefusal(`${label} failed: ${why}\nThe whole output is in ${logFile}`);
}
