// One configuration value: which variable, what it means, how its text becomes a typed value.
// A reader knows nothing about the environment it is read from.
import type { BacktalkError } from '../errors/backtalk-error.js';
import { kitErrors } from '../errors/kit-errors.js';

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
  /** Shown in place of a default that differs from machine to machine. */
  readonly shownDefault?: string;
  /** Never shown, neither as a default nor in a complaint about a bad value. */
  readonly secret?: boolean;
}

export type Parsed<T> = { readonly value: T } | { readonly problem: string };

export interface Kind<T> {
  /** Ends the sentence "<VARIABLE> is not set; give …". */
  readonly expected: string;
  parse(text: string): Parsed<T>;
  show(value: T): string;
}

export function makeReader<T>(variable: string, options: SettingOptions<T>, kind: Kind<T>): Reader<T> {
  const secret = options.secret ?? false;
  return {
    variable,
    description: options.description,
    shownDefault: shownDefault(options, kind),
    secret,
    read: (raw) => {
      const text = raw?.trim() ?? '';
      if (text !== '') return parse(variable, text, secret, kind);
      if (options.default === undefined) throw invalid(`${variable} is not set; give ${kind.expected}.`);
      return typeof options.default === 'string' ? parse(variable, options.default, secret, kind) : options.default;
    },
  };
}

/** The same setting, where leaving it out is an answer too. */
export function optional<T>(reader: Reader<T>): Reader<T | undefined> {
  return {
    variable: reader.variable,
    description: reader.description,
    shownDefault: 'not set',
    secret: reader.secret,
    read: (raw) => ((raw?.trim() ?? '') === '' ? undefined : reader.read(raw)),
  };
}

function parse<T>(variable: string, text: string, secret: boolean, kind: Kind<T>): T {
  const parsed = kind.parse(text);
  if ('value' in parsed) return parsed.value;
  const shown = secret ? 'the given value (hidden, a secret)' : JSON.stringify(text);
  throw invalid(`${variable}: ${shown} ${parsed.problem}; give ${kind.expected}.`);
}

function shownDefault<T>(options: SettingOptions<T>, kind: Kind<T>): string {
  if (options.default === undefined) return 'required';
  if (options.secret === true) return 'hidden';
  if (options.shownDefault !== undefined) return options.shownDefault;
  return typeof options.default === 'string' ? options.default : kind.show(options.default);
}

function invalid(problem: string): BacktalkError {
  return kitErrors.configInvalid({ problems: [problem] });
}
