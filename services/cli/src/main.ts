// `npx backtalk` as a process. Its commands are loaded after it hears signals.
import { stopSignal } from './stop-signal.js';

const signal = stopSignal();
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  // The reader has enough, as `head` has: that is no failure.
  process.exit(0);
});
const { createProgram } = await import('./program.js');
await createProgram(signal).parseAsync(process.argv);
