// Turns a table of error specs into functions that make those errors. In: the owner's name and the table.
// Out: one factory for each row, and the rows themselves as `catalogue`. It keeps no registry: nothing happens on import.
import { BacktalkError, type Retry } from './backtalk-error.js';

/** One row of a catalogue: the code is the contract, the message is for people. */
export interface ErrorSpec {
  readonly code: string;
  readonly retry: Retry;
  readonly status?: number;
  readonly message: (params: never) => string;
}

export interface CatalogueRow {
  readonly owner: string;
  readonly code: string;
  readonly retry: Retry;
  readonly status?: number;
}

type Factory<M> = M extends () => string
  ? (params?: object, cause?: unknown) => BacktalkError
  : M extends (params: infer P) => string
    ? (params: P, cause?: unknown) => BacktalkError
    : never;

export type ErrorFactories<S extends Record<string, ErrorSpec>> = {
  readonly [K in keyof S]: Factory<S[K]['message']>;
} & { readonly catalogue: readonly CatalogueRow[] };

export function defineErrors<const S extends Record<string, ErrorSpec>>(owner: string, specs: S): ErrorFactories<S> {
  const factories = Object.entries(specs).map(([name, spec]) => [name, factoryOf(spec)]);
  const catalogue = Object.values(specs).map(({ code, retry, status }) =>
    Object.freeze(status === undefined ? { owner, code, retry } : { owner, code, retry, status }),
  );
  return Object.freeze({ ...Object.fromEntries(factories), catalogue }) as ErrorFactories<S>;
}

function factoryOf(spec: ErrorSpec) {
  return (params: object = {}, cause?: unknown): BacktalkError =>
    new BacktalkError({
      code: spec.code,
      retry: spec.retry,
      status: spec.status,
      message: spec.message(params as never),
      detail: { ...params },
      cause,
    });
}
