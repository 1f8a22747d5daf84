// A port that nobody listens on and that is given once: below those that the system gives to outgoing connections and to
// who asks for any port, so that a server that was killed finds its port again. In: nothing. Out: the port's number.
import { once } from 'node:events';
import { createServer } from 'node:net';
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
    if (await isFree(port)) return port;
  }
  throw testingErrors.portsUsedUp({ first, end });
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
