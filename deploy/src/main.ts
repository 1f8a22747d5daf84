// Runs Backtalk on one machine. The set-up (deploy/start.mjs) calls it once everything is installed and built.
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { asBacktalkError } from '@backtalk/kit';
import { dryRun } from './dry-run.js';
import { readOptions } from './options.js';
import { resetMachine } from './reset.js';
import { startMachine } from './start-machine.js';
import { createTerminal } from './terminal.js';

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
let terminal = createTerminal(process.stdout);

try {
  const options = readOptions(process.argv.slice(2), root);
  if (options.verb === 'reset') await resetMachine(options, terminal);
  else if (options.box?.dryRun === true) {
    process.stdout.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error;
      // The reader has enough, as `head` has: that is no failure.
      process.exit(0);
    });
    // What reads JSON or variables gets nothing else, and a person sees why there is none.
    if (options.box.json || options.box.compose) terminal = createTerminal(process.stderr);
    await dryRun(root, options, options.box, process.stdout);
  } else await startMachine(root, options, terminal);
} catch (error) {
  const known = asBacktalkError(error);
  // Of an error that has no words of its own, the system’s say most.
  terminal.warn(known.code === 'internal' && error instanceof Error ? error.message : known.message);
  process.exitCode = 1;
}
