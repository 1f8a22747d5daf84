import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { plain, readmeOf, readmeWithTable, servicesWithTables, settingsTable } from './settings-table.js';

it.each(servicesWithTables)(
  'the README of the %s has the table that its settings make (npm run docs)',
  async (service) => {
    expect(plain(readFileSync(readmeOf(service), 'utf8'))).toBe(plain(await readmeWithTable(service)));
  },
);

it('a table names every variable with its default and its meaning', async () => {
  const lines = (await settingsTable('collector')).split('\n');
  expect(lines).toContain(
    '| `BACKTALK_SESSION_IDLE` | `10m` | A session in which nothing was said for so long is over. |',
  );
});
