// `simulate`: the simulated user and the scorer are measuring tools of a checkout (test/simulate), and no part of the product.
// This runs them as a process of their own, and first builds and installs what they need where it is missing.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { cliErrors } from '../errors.js';

const thisCheckout = fileURLToPath(new URL('../../../../', import.meta.url));

/** Gives the tool's exit status. */
export async function simulate(words: readonly string[], signal: AbortSignal, root = thisCheckout): Promise<number> {
  if (!existsSync(join(root, 'test', 'simulate'))) throw cliErrors.checkoutNeeded({ what: 'simulate' });
  const tool = join(root, 'test', 'dist', 'simulate', 'main.js');
  // Left behind by the set-up once the scorer's embeddings are installed.
  const isInstalled = existsSync(join(root, '.venv', 'stamps', 'embeddings'));
  // A model that scores takes the place of the embeddings, and nothing else scores a persona.
  const needsNone = words.some((word) => /^--(?:help$|scorer-url|persona)/.test(word));
  const isReady = existsSync(tool) && (needsNone || isInstalled);
  if (!isReady) {
    const status = await statusOf([join(root, 'deploy', 'start.mjs'), 'setup', '--with', 'scoring'], signal);
    if (status !== 0) return status;
  }
  return statusOf([tool, ...words], signal);
}

/** A group of its own: Ctrl-C reaches it from here alone, and so does the end of this process, which a second one brings. */
function statusOf(args: readonly string[], signal: AbortSignal): Promise<number> {
  const child = spawn(process.execPath, args, { stdio: 'inherit', detached: true });
  const stop = () => child.kill('SIGINT');
  signal.addEventListener('abort', stop);
  process.once('exit', stop);
  return new Promise<number>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (status) => {
      resolve(status ?? 1);
    });
  }).finally(() => {
    signal.removeEventListener('abort', stop);
    process.off('exit', stop);
  });
}
