// The table of variables in a service's README, made of the settings that the service's own code reads.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { repositoryRoot } from '@backtalk/kit/testing';
import { settingsOfService } from '../chart/contract.js';

export const servicesWithTables = ['gateway', 'collector', 'judge', 'trainer', 'publisher', 'loader'] as const;

/** Defaults that are said rather than written. */
const words: ReadonlySet<string> = new Set(['', 'empty', 'required', 'not set', 'host name', 'hidden']);

/** The first table under `## Configuration`; text below it is written by hand. */
const configurationTable = /(^## Configuration\n\n)((?:\|[^\n]*\n)+)/m;

export function readmeOf(service: string): string {
  return join(repositoryRoot(), 'services', service, 'README.md');
}

export async function settingsTable(service: string): Promise<string> {
  const readers = Object.values(await settingsOfService(service));
  const rows = readers.map(({ variable, shownDefault, description }) => [
    `\`${variable}\``,
    words.has(shownDefault) ? shownDefault || 'empty' : `\`${shownDefault}\``,
    description,
  ]);
  const lines = [['variable', 'default', 'meaning'], ['---', '---', '---'], ...rows];
  return lines.map((cells) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |\n`).join('');
}

/** The README with its table made anew. */
export async function readmeWithTable(service: string): Promise<string> {
  const table = await settingsTable(service);
  return readFileSync(readmeOf(service), 'utf8').replace(configurationTable, (_, heading: string) => heading + table);
}

/** Without the spaces that align columns, and the escapes that a formatter adds. */
export function plain(markdown: string): string {
  return markdown
    .replaceAll(/ *\| */g, '|')
    .replaceAll(/-{3,}/g, '---')
    .replaceAll(/\\([*_<])/g, '$1');
}
