// A port that nobody listens on and that is given once, to one of all test processes: below those that the system gives to outgoing connections and to
// who asks for any port, so that a server that was killed finds its port again. In: nothing. Out: the port's number.
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { threadId } from 'node:worker_threads';
import { testingErrors } from './until.js';

const first = 20_000;
const end = 30_000;
/** Test files that run at once are processes of their own; each begins in a part of its own. */
const slice = 100;
const slices = (end - first) / slice;

let next = first + ((process.pid + threadId) % slices) * slice + Math.floor(Math.random() * slice);
let given = 0;

export async function freePort(): Promise<number> {
  while (given < end - first) {
    const port = next;
    given += 1;
    next = port + 1 < end ? port + 1 : first;
    if (isOurs(port) && (await isFree(port))) return port;
  }
  throw testingErrors.portsUsedUp({ first, end });
}

/** A run of tests has a folder of its own for temporary files (test/run/temporary-folder.mjs), and ports are of all runs. */
const ofAllRuns = (folder: string) => (basename(folder).startsWith('backtalk-run-') ? dirname(folder) : folder);
const claims = join(ofAllRuns(tmpdir()), 'backtalk-test-ports');

/** A port that another process was given is that one's as long as it lives, whether it listens yet or not. */
function isOurs(port: number): boolean {
  mkdirSync(claims, { recursive: true });
  const file = join(claims, String(port));
  const own = String(process.pid);
  try {
    writeFileSync(file, own, { flag: 'wx' });
    return true;
  } catch {
    const holder = Number(readFileSync(file, 'utf8'));
    // Empty: it is being written.
    if (holder === 0 || holder === process.pid || isAlive(holder)) return false;
    writeFileSync(file, own);
    return true;
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  server.listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
  } catch {
    // Taken, or not ours to take.
    return false;
  }
  server.close();
  await once(server, 'close');
  return true;
}
