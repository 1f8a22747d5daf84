// `npx backtalk` as a process.
import { createProgram } from './program.js';

const ending = new AbortController();
process.once('SIGINT', () => {
  ending.abort();
});
await createProgram(ending.signal).parseAsync(process.argv);
