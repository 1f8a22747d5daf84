// `npx backtalk` as a process.
import { createProgram } from './program.js';
import { stopSignal } from './shell.js';

await createProgram(stopSignal()).parseAsync(process.argv);
