// `npm run docs`: writes what documents say of the code's own settings.
import { writeFileSync } from 'node:fs';
import { readmeOf, readmeWithTable, servicesWithTables } from './settings-table.js';

for (const service of servicesWithTables) writeFileSync(readmeOf(service), await readmeWithTable(service));
