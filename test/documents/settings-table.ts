// The table of variables in a README, made of the settings that the code reads: what services share stands in the kit's, and theirs name it.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { baseSettings, installationSettings } from '@backtalk/kit';
import { repositoryRoot } from '@backtalk/kit/testing';
import { settingsOfService } from '../chart/contract.js';

/** Folders of `services` whose READMEs have one. */
export const tabled = ['gateway', 'collector', 'judge', 'trainer', 'publisher', 'loader', 'lib/kit'] as const;

type Tabled = (typeof tabled)[number];

const shared = Object.values({ ...baseSettings, ...installationSettings });

/** Defaults that are said rather than written. */
const words: ReadonlySet<string> = new Set(['', 'empty', 'required', 'not set', 'host name', 'hidden']);

const sharing = 'Shared with other services, and explained in [the kit](../lib/kit/README.md#configuration)';

/** The first table under `## Configuration`, with what is shared; text below it is written by hand. */
const configurationTable = /(^## Configuration\n\n)(?:\|[^\n]*\n)+(?:\nShared with other services[^\n]*\n)?/m;

export function readmeOf(folder: Tabled): string {
  return join(repositoryRoot(), 'services', folder, 'README.md');
}

export async function settingsTable(folder: Tabled): Promise<string> {
  const isKit = folder === 'lib/kit';
  const readers = isKit ? shared : Object.values(await settingsOfService(folder));
  const elsewhere = new Set(isKit ? [] : shared.map(({ variable }) => variable));
  const rows = readers
    .filter(({ variable }) => !elsewhere.has(variable))
    .map(({ variable, shownDefault, description }) => [
      `\`${variable}\``,
      words.has(shownDefault) ? shownDefault || 'empty' : `\`${shownDefault}\``,
      description,
    ]);
  const lines = [['variable', 'default', 'meaning'], ['---', '---', '---'], ...rows];
  const table = lines.map((cells) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |\n`).join('');
  const names = readers.flatMap(({ variable }) => (elsewhere.has(variable) ? `\`${variable}\`` : []));
  return isKit ? table : `${table}\n${sharing}: ${names.join(', ')}.\n`;
}

/** The README with its table made anew. */
export async function readmeWithTable(folder: Tabled): Promise<string> {
  const table = await settingsTable(folder);
  return readFileSync(readmeOf(folder), 'utf8').replace(configurationTable, (_, heading: string) => heading + table);
}

/** Without the spaces that align columns, and the escapes that a formatter adds. */
export function plain(markdown: string): string {
  return markdown
    .replaceAll(/ *\| */g, '|')
    .replaceAll(/-{3,}/g, '---')
    .replaceAll(/\\([*_<])/g, '$1');
}
