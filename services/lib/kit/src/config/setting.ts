// The vocabulary in which a service's config.ts is written: one function for each kind of value.
import {
  type Address,
  addressKind,
  type BlobPlace,
  blobPlaceKind,
  booleanKind,
  type Bounds,
  durationKind,
  listKind,
  numberKind,
  oneOfKind,
  textKind,
  urlKind,
  urlsKind,
} from './kinds.js';
import { makeReader, optional, type Reader, type SettingOptions } from './reader.js';

type Bounded<T> = SettingOptions<T> & Bounds;

export const setting = {
  /** Bounds count characters. */
  string: (variable: string, options: Bounded<string>): Reader<string> =>
    makeReader(variable, options, textKind(options)),
  integer: (variable: string, options: Bounded<number>): Reader<number> =>
    makeReader(variable, options, numberKind(options, true)),
  number: (variable: string, options: Bounded<number>): Reader<number> =>
    makeReader(variable, options, numberKind(options, false)),
  boolean: (variable: string, options: SettingOptions<boolean>): Reader<boolean> =>
    makeReader(variable, options, booleanKind),
  oneOf: <const V extends readonly string[]>(
    variable: string,
    values: V,
    options: SettingOptions<V[number]> & { readonly default?: V[number] },
  ): Reader<V[number]> => makeReader(variable, options, oneOfKind(values)),
  /** Read from `500ms`, `30s`, `2m` or `1h`; bounds and value are milliseconds. */
  durationMs: (variable: string, options: Bounded<number>): Reader<number> =>
    makeReader(variable, options, durationKind(options)),
  address: (variable: string, options: SettingOptions<Address>): Reader<Address> =>
    makeReader(variable, options, addressKind),
  url: (variable: string, options: SettingOptions<string>): Reader<string> => makeReader(variable, options, urlKind),
  urls: (variable: string, options: SettingOptions<string>): Reader<string> => makeReader(variable, options, urlsKind),
  path: (variable: string, options: SettingOptions<string>): Reader<string> =>
    makeReader(variable, options, textKind({}, 'a path')),
  list: (variable: string, options: SettingOptions<readonly string[]>): Reader<readonly string[]> =>
    makeReader(variable, options, listKind),
  blobPlace: (variable: string, options: SettingOptions<BlobPlace>): Reader<BlobPlace> =>
    makeReader(variable, options, blobPlaceKind),
  optional,
};
