// The chart's README: the words around it, and the table of all values from values.yaml. In: nothing. Out: its text.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { chartFolder } from './helm.js';
import { rowsOf, type ValueRow } from './values-comments.js';

const begin = '<!-- values: made from values.yaml by write-generated -->';
const end = '<!-- end of values -->';

export function readmeFile(): string {
  const now = readFileSync(join(chartFolder, 'README.md'), 'utf8');
  const rows = rowsOf(readFileSync(join(chartFolder, 'values.yaml'), 'utf8'));
  const [before = ''] = now.split(begin);
  const [, after = ''] = now.split(end);
  return `${before}${begin}\n\n${tableOf(rows)}\n\n${end}${after}`;
}

function tableOf(rows: readonly ValueRow[]): string {
  const cells = rows.map(({ path, shown, comment }) => [`\`${path}\``, `\`${shown}\``, comment].map(escaped));
  const header = ['value', 'default', 'meaning'];
  const widths = header.map((title, at) => Math.max(title.length, ...cells.map((row) => (row[at] ?? '').length)));
  const line = (row: readonly string[]) => `| ${row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join(' | ')} |`;
  return [line(header), line(widths.map((width) => '-'.repeat(width))), ...cells.map(line)].join('\n');
}

function escaped(cell: string): string {
  return cell.replaceAll('|', '\\|');
}
