// The command line of a program that is told by whole numbers and switches. In: what it knows, and the arguments. Out: their
// values, or a refusal in one line.
import { parseArgs } from 'node:util';
import { benchErrors } from './errors.js';

export interface Known<N extends string, S extends string> {
  /** With what holds where nothing is said. */
  readonly numbers: Readonly<Record<N, number>>;
  readonly switches: readonly S[];
}

export function readWholeNumbers<N extends string, S extends string>(
  argv: readonly string[],
  { numbers, switches }: Known<N, S>,
): { readonly numbers: Readonly<Record<N, number>>; readonly switches: ReadonlySet<string> } {
  const asText = Object.keys(numbers).map((name) => [name, { type: 'string' as const }] as const);
  const asSwitch = switches.map((name) => [name, { type: 'boolean' as const }] as const);
  const given = parse([...argv], Object.fromEntries<Option>([...asText, ...asSwitch]));
  const read: Record<N, number> = { ...numbers };
  for (const name of Object.keys(numbers) as N[]) {
    const text = given[name]?.toString();
    if (text === undefined) continue;
    const value = Number(text);
    if (!Number.isSafeInteger(value) || value < 1)
      throw benchErrors.usage({ why: `--${name} takes a whole number above 0, and not '${text}'.` });
    read[name] = value;
  }
  return { numbers: read, switches: new Set<string>(switches.filter((name) => given[name] === true)) };
}

type Option = { readonly type: 'string' } | { readonly type: 'boolean' };

function parse(
  args: string[],
  options: Record<string, Option>,
): Readonly<Record<string, string | boolean | undefined>> {
  try {
    return parseArgs({ args, options }).values;
  } catch (error) {
    const [why = ''] = (error instanceof Error ? error.message : String(error)).split('. ');
    throw benchErrors.usage({ why: `${why}.` }, error);
  }
}
