#!/usr/bin/env node
// `npx backtalk`: hands over to the compiled program, or says how to get it.

import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const program = new URL('../dist/main.js', import.meta.url);
if (existsSync(fileURLToPath(program))) await import(program.href);
else {
  process.stderr.write('backtalk is not built yet: run `npm start` once (it builds everything), then try again.\n');
  process.exitCode = 2;
}
