// How each kind of setting is written. In: text. Out: a value, or the problem with the text, in words. Pure.
import type { Kind, Parsed } from './reader.js';

export interface Bounds {
  readonly min?: number;
  readonly max?: number;
}

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** Text whose length lies within the bounds. */
export function textKind(bounds: Bounds, what = 'a text'): Kind<string> {
  const expected = `${what}${boundsInWords(bounds, ' characters')}`;
  return { expected, parse: (text) => within(text, text.length, bounds, 'characters'), show: (value) => value };
}

export function numberKind(bounds: Bounds, whole: boolean): Kind<number> {
  const expected = `a ${whole ? 'whole ' : ''}number${boundsInWords(bounds)}`;
  return { expected, parse: (text) => parseNumber(text, bounds, whole), show: String };
}

function parseNumber(text: string, bounds: Bounds, whole: boolean): Parsed<number> {
  const value = Number(text);
  if (!Number.isFinite(value)) return { problem: 'is not a number' };
  if (whole && !Number.isSafeInteger(value)) return { problem: 'is not a whole number' };
  return within(value, value, bounds);
}

export const booleanKind: Kind<boolean> = {
  expected: 'true or false',
  parse: (text) => {
    if (['true', '1', 'yes', 'on'].includes(text.toLowerCase())) return { value: true };
    if (['false', '0', 'no', 'off'].includes(text.toLowerCase())) return { value: false };
    return { problem: 'is neither true nor false' };
  },
  show: String,
};

export function oneOfKind<const V extends readonly string[]>(values: V): Kind<V[number]> {
  return {
    expected: `one of ${values.join(', ')}`,
    parse: (text) => {
      const value = values.find((candidate) => candidate === text);
      return value === undefined ? { problem: 'is none of the known values' } : { value };
    },
    show: (value) => value,
  };
}

const millisecondsIn = new Map([
  ['ms', 1],
  ['s', 1000],
  ['m', 60_000],
  ['h', 3_600_000],
]);

export function durationKind(bounds: Bounds): Kind<number> {
  const expected = `a duration such as 500ms, 30s, 2m or 1h${boundsInWords(bounds, ' ms')}`;
  return { expected, parse: (text) => parseDuration(text, bounds), show: (value) => `${value}ms` };
}

function parseDuration(text: string, bounds: Bounds): Parsed<number> {
  const [, amount, unit] = /^(\d+(?:\.\d+)?)(ms|s|m|h)$/.exec(text) ?? [];
  const factor = millisecondsIn.get(unit ?? '');
  if (amount === undefined || factor === undefined) return { problem: 'is not a duration' };
  const value = Number(amount) * factor;
  return within(value, value, bounds);
}

export const addressKind: Kind<Address> = {
  expected: 'host:port, such as 127.0.0.1:30000',
  parse: (text) => {
    const [, bracketed, plain, portText] = /^(?:\[([^\]]+)\]|([^:]+)):(\d{1,5})$/.exec(text) ?? [];
    const host = bracketed ?? plain;
    if (host === undefined) return { problem: 'is not host:port' };
    const port = Number(portText);
    return port > 65_535 ? { problem: 'has a port above 65535' } : { value: { host, port } };
  },
  show: ({ host, port }) => (host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`),
};

export const urlKind: Kind<string> = {
  expected: 'a URL such as http://127.0.0.1:30030',
  parse: (text) => (URL.canParse(text) && text.includes('://') ? { value: text } : { problem: 'is not a URL' }),
  show: (value) => value,
};

/** Several, with commas between; the value stays one text. */
export const urlsKind: Kind<string> = {
  expected: 'URLs with commas between them, such as nats://one:4222,nats://two:4222',
  parse: (text) => {
    const parts = text.split(',').map((part) => part.trim());
    const bad = parts.some((part) => 'problem' in urlKind.parse(part));
    return bad ? { problem: 'is not a list of URLs' } : { value: parts.join(',') };
  },
  show: (value) => value,
};

/** Where blobs lie. */
export type BlobPlace =
  { readonly kind: 'folder'; readonly path: string } | { readonly kind: 'jetstream' } | { readonly kind: 's3' };

export const blobPlaceKind: Kind<BlobPlace> = {
  expected: 'folder:<path>, jetstream or s3',
  parse: (text) => {
    if (text === 'jetstream' || text === 's3') return { value: { kind: text } };
    const [, path] = /^folder:(.+)$/.exec(text) ?? [];
    return path === undefined ? { problem: 'is none of the known stores' } : { value: { kind: 'folder', path } };
  },
  show: (place) => (place.kind === 'folder' ? `folder:${place.path}` : place.kind),
};

export const listKind: Kind<readonly string[]> = {
  expected: 'values with commas between them',
  parse: (text) => {
    const parts = text.split(',').map((part) => part.trim());
    return { value: parts.filter((part) => part !== '') };
  },
  show: (value) => value.join(','),
};

function within<T>(value: T, measure: number, { min, max }: Bounds, unit = ''): Parsed<T> {
  const shownUnit = unit === '' ? '' : ` ${unit}`;
  if (min !== undefined && measure < min) return { problem: `is below the least allowed, ${min}${shownUnit}` };
  if (max !== undefined && measure > max) return { problem: `is above the most allowed, ${max}${shownUnit}` };
  return { value };
}

function boundsInWords({ min, max }: Bounds, unit = ''): string {
  if (min !== undefined && max !== undefined) return ` from ${min} to ${max}${unit}`;
  if (min !== undefined) return ` of at least ${min}${unit}`;
  return max === undefined ? '' : ` of at most ${max}${unit}`;
}
