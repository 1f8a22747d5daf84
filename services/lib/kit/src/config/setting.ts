// The vocabulary in which a service's config.ts is written: one function for each kind of value. A reader knows its
// variable, its meaning and how text becomes a value; it knows nothing about the environment it is read from.
import { z } from 'zod';
import { kitErrors } from '../errors/backtalk-error.js';
import { isPolicyName } from '../identity/weights-version.js';

export interface Reader<T> {
  readonly variable: string;
  readonly description: string;
  readonly shownDefault: string;
  readonly secret: boolean;
  /** Throws `config_invalid` with one line that names the variable and says what to do. */
  read(raw: string | undefined): T;
}

export interface SettingOptions<T> {
  readonly description: string;
  /** Used when the variable is unset or empty. Text is read as the variable's own text would be. Absent: required. */
  readonly default?: T | string;
  /** Shown in place of a default that differs from machine to machine, or of a secret's that is none. */
  readonly shownDefault?: string;
  /** Never shown, neither as a default nor in a complaint about a bad value. */
  readonly secret?: boolean;
}

interface Bounds {
  readonly min?: number;
  readonly max?: number;
}

type Bounded<T> = SettingOptions<T> & Bounds;

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** Where blobs lie. */
export type BlobPlace =
  { readonly kind: 'folder'; readonly path: string } | { readonly kind: 'jetstream' } | { readonly kind: 's3' };

/** `expected` ends the sentence "<VARIABLE> is not set; give …"; the schema's messages go on from the variable's value. */
function reader<T>(
  variable: string,
  { description, secret = false, ...options }: SettingOptions<T>,
  expected: string,
  schema: z.ZodType<T, string>,
  unit = '',
): Reader<T> {
  const { default: byDefault } = options;
  const defaultText = typeof byDefault === 'number' ? `${byDefault}${unit}` : String(byDefault);
  const shown = byDefault === undefined ? 'required' : secret && byDefault !== '' ? 'hidden' : defaultText;
  const complain = (problem: string) =>
    kitErrors.configInvalid({ problems: [`${variable}${problem}; give ${expected}.`] });
  return {
    variable,
    description,
    shownDefault: options.shownDefault ?? shown,
    secret,
    read: (raw) => {
      const text = raw?.trim() ?? '';
      const given = text === '' ? byDefault : text;
      if (given === undefined) throw complain(' is not set');
      if (typeof given !== 'string') return given;
      const parsed = schema.safeParse(given);
      if (parsed.success) return parsed.data;
      const value = secret ? 'the given value (hidden, a secret)' : JSON.stringify(given);
      throw complain(`: ${value} ${parsed.error.issues[0]?.message}`);
    },
  };
}

function inWords({ min, max }: Bounds, unit = ''): string {
  if (min !== undefined && max !== undefined) return ` from ${min} to ${max}${unit}`;
  if (min !== undefined) return ` of at least ${min}${unit}`;
  return max === undefined ? '' : ` of at most ${max}${unit}`;
}

function text({ min = 0, max = Number.MAX_SAFE_INTEGER }: Bounds): z.ZodType<string, string> {
  return z
    .string()
    .min(min, `is below the least allowed, ${min} characters`)
    .max(max, `is above the most allowed, ${max} characters`);
}

function number({ min = -Infinity, max = Infinity }: Bounds) {
  return z
    .number('is not a number')
    .min(min, `is below the least allowed, ${min}`)
    .max(max, `is above the most allowed, ${max}`);
}

const nameCharactersMax = 63;
const subjectName = z
  .string()
  .max(nameCharactersMax, `has more than ${nameCharactersMax} characters`)
  .regex(/^[A-Za-z0-9_-]+$/, 'has other characters');

const millisecondsIn = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 } as const;

const address = z
  .string()
  .regex(/^(\[[^\]]+\]|[^:]+):\d{1,5}$/, 'is not host:port')
  .transform((written): Address => {
    const colon = written.lastIndexOf(':');
    return { host: written.slice(0, colon).replace(/^\[(.+)\]$/, '$1'), port: Number(written.slice(colon + 1)) };
  })
  .refine(({ port }) => port <= 65_535, 'has a port above 65535');

const url = z.string().refine((written) => URL.canParse(written) && written.includes('://'), 'is not a URL');

/** No two of them are the same: what each is asked for would be asked of one twice. */
const addresses = z
  .string()
  .transform((written) => written.split(',').map((part) => part.trim()))
  .refine((parts) => new Set(parts).size === parts.length, 'names an address twice')
  .pipe(z.array(address));

const policies = z
  .string()
  .transform((written): readonly string[] => written.split(',').map((part) => part.trim()))
  .refine((names) => names.every(isPolicyName), 'holds what is no name of a policy')
  .refine((names) => new Set(names).size === names.length, 'names a policy twice');

const list = z.string().transform((written) => written.split(',').map((part) => part.trim()));

const urls = list.pipe(z.array(url));

const blobPlace = z
  .string()
  .regex(/^(folder:.+|jetstream|s3)$/, 'is none of the known stores')
  .transform((written): BlobPlace => {
    if (written === 'jetstream' || written === 's3') return { kind: written };
    return { kind: 'folder', path: written.slice('folder:'.length) };
  });

export const setting = {
  /** Bounds count characters. */
  string: (variable: string, options: Bounded<string>): Reader<string> =>
    reader(variable, options, `a text${inWords(options, ' characters')}`, text(options)),
  /** Part of a subject: a dot or a space would make it another. */
  name: (variable: string, options: SettingOptions<string>): Reader<string> =>
    reader(variable, options, `1 to ${nameCharactersMax} letters, digits, - and _`, subjectName),
  integer: (variable: string, options: Bounded<number>): Reader<number> => {
    const schema = z.string().transform(Number).pipe(number(options).int('is not a whole number'));
    return reader(variable, options, `a whole number${inWords(options)}`, schema);
  },
  number: (variable: string, options: Bounded<number>): Reader<number> =>
    reader(variable, options, `a number${inWords(options)}`, z.string().transform(Number).pipe(number(options))),
  boolean: (variable: string, options: SettingOptions<boolean>): Reader<boolean> => {
    const [truthy, falsy] = [
      ['true', '1', 'yes', 'on'],
      ['false', '0', 'no', 'off'],
    ];
    return reader(
      variable,
      options,
      'true or false',
      z.stringbool({ truthy, falsy, error: 'is neither true nor false' }),
    );
  },
  oneOf: <const V extends readonly string[]>(
    variable: string,
    values: V,
    options: SettingOptions<V[number]> & { readonly default?: V[number] },
  ): Reader<V[number]> => {
    const known = z.enum([...values], 'is none of the known values') as z.ZodType<V[number], string>;
    return reader(variable, options, `one of ${values.join(', ')}`, known);
  },
  /** Read from `500ms`, `30s`, `2m` or `1h`; bounds and value are milliseconds. */
  durationMs: (variable: string, options: Bounded<number>): Reader<number> => {
    const expected = `a duration such as 500ms, 30s, 2m or 1h${inWords(options, ' ms')}`;
    const schema = z
      .string()
      .regex(/^\d+(\.\d+)?(ms|s|m|h)$/, 'is not a duration')
      .transform((written) => {
        const [, amount, unit] = /^(\d+(?:\.\d+)?)(ms|s|m|h)$/.exec(written) ?? [];
        return Number(amount) * millisecondsIn[unit as keyof typeof millisecondsIn];
      });
    return reader(variable, options, expected, schema.pipe(number(options)), 'ms');
  },
  address: (variable: string, options: SettingOptions<Address>): Reader<Address> =>
    reader(variable, options, 'host:port, such as 127.0.0.1:30000', address),
  /** Several, with commas between. */
  addresses: (variable: string, options: SettingOptions<readonly Address[]>): Reader<readonly Address[]> =>
    reader(variable, options, 'host:port with commas between several, such as one:30026,two:30026', addresses),
  url: (variable: string, options: SettingOptions<string>): Reader<string> =>
    reader(variable, options, 'a URL such as http://127.0.0.1:30030', url),
  /** Several, with commas between; the value stays one text. */
  urls: (variable: string, options: SettingOptions<string>): Reader<string> => {
    const schema = urls.transform((written) => written.join(','));
    return reader(variable, options, 'URLs with commas between them, such as nats://one:4222,nats://two:4222', schema);
  },
  path: (variable: string, options: SettingOptions<string>): Reader<string> =>
    reader(variable, options, 'a path', text({})),
  list: (variable: string, options: SettingOptions<readonly string[]>): Reader<readonly string[]> => {
    const schema = list.transform((parts): readonly string[] => parts.filter((part) => part !== ''));
    return reader(variable, options, 'values with commas between them', schema);
  },
  /** Several, with commas between. */
  urlList: (variable: string, options: SettingOptions<readonly string[]>): Reader<readonly string[]> =>
    reader(variable, options, 'URLs with commas between them, such as http://one:8000,http://two:8000', urls),
  policies: (variable: string, options: SettingOptions<readonly string[]>): Reader<readonly string[]> =>
    reader(
      variable,
      options,
      'names with commas between them, of letters, digits, - and _, none like a version (ada-v1)',
      policies,
    ),
  blobPlace: (variable: string, options: SettingOptions<BlobPlace>): Reader<BlobPlace> =>
    reader(variable, options, 'folder:<path>, jetstream or s3', blobPlace),
  /** The same setting, where leaving it out is an answer too. */
  optional: <T>(given: Reader<T>): Reader<T | undefined> => ({
    variable: given.variable,
    description: given.description,
    secret: given.secret,
    shownDefault: 'not set',
    read: (raw) => ((raw?.trim() ?? '') === '' ? undefined : given.read(raw)),
  }),
};
