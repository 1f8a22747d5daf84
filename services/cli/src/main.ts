// `npx backtalk` as a process. Its commands are loaded after it hears signals.
import { stopSignal } from './stop-signal.js';

const signal = stopSignal();
let isTold = false;
process.stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
  // The reader has enough, as `head` has: that is no failure, and what the command has begun it ends.
  if (code === 'EPIPE' || isTold) return;
  isTold = true;
  process.exitCode = 1;
  process.stderr.write(`What is printed cannot be written: ${message}\n`);
});
process.stderr.on('error', () => undefined);
const { createProgram } = await import('./program.js');
await createProgram(signal).parseAsync(process.argv);
