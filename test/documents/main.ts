// `npm run docs`: writes what documents say of the code's own settings.
import { writeFileSync } from 'node:fs';
import { readmeOf, readmeWithTable, tabled } from './settings-table.js';

for (const folder of tabled) writeFileSync(readmeOf(folder), await readmeWithTable(folder));
