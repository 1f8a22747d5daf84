// `npx backtalk` as a process. Its commands are loaded after it hears signals.
import { stopSignal } from './stop-signal.js';

const signal = stopSignal();
const { createProgram } = await import('./program.js');
await createProgram(signal).parseAsync(process.argv);
