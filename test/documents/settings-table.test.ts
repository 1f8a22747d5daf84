import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { plain, readmeOf, readmeWithTable, settingsTable, tabled } from './settings-table.js';

it.each(tabled)('the README of services/%s has the table that its settings make (npm run docs)', async (folder) => {
  expect(plain(readFileSync(readmeOf(folder), 'utf8'))).toBe(plain(await readmeWithTable(folder)));
});

it('a table names every variable of a service with its default and its meaning, and what services share stands in the kit’s', async () => {
  const lines = (await settingsTable('collector')).split('\n');
  expect(lines).toContain(
    '| `BACKTALK_SESSION_IDLE` | `10m` | A session in which nothing was said for so long is over. |',
  );
  expect(lines.at(-2)).toMatch(/^Shared with other services.*: `BACKTALK_NATS_URL`, .*`BACKTALK_TLS_KEY`\.$/);
  expect((await settingsTable('lib/kit')).split('\n')).toContain(
    '| `BACKTALK_ACK_WAIT` | `30s` | How long the broker waits for an ack before it gives a fact to another instance. |',
  );
});
