// Spans: what took how long, as part of which trace. In: a name, the trace it belongs to, a few ids. Out: the trace to hand
// on. While no spans are collected, which is the default, nothing is made and the trace is handed on as it is. Spans hold
// ids, names and codes, never what users or models wrote.
import { asBacktalkError } from '../errors/backtalk-error.js';
import type { Trace } from './trace.js';

export type SpanKind = 'internal' | 'server' | 'client' | 'producer' | 'consumer';

export interface SpanOptions {
  readonly kind: SpanKind;
  readonly parent: Trace;
  /** Other traces that come together here. */
  readonly links?: readonly Trace[];
  readonly attributes?: Readonly<Record<string, string | number>>;
}

export interface Span {
  /** For everything that follows from it. */
  readonly trace: Trace;
  /** With the code of the error, where it failed. */
  end(failure?: string): void;
}

type StartSpan = (name: string, options: SpanOptions) => Span;

let collecting: StartSpan | undefined;

/** True while spans are collected: a caller that would have to build attributes first may ask. */
export function isTracing(): boolean {
  return collecting !== undefined;
}

/** One collector a process, as it is one service. Gives back how to end it. */
export function collectSpans(start: StartSpan): () => void {
  collecting = start;
  return () => {
    collecting = undefined;
  };
}

export function startSpan(name: string, options: SpanOptions): Span {
  return collecting === undefined ? { trace: options.parent, end: () => undefined } : collecting(name, options);
}

/** The span lasts as long as the work, and fails with it. */
export async function inSpan<T>(name: string, options: SpanOptions, work: (trace: Trace) => Promise<T>): Promise<T> {
  if (collecting === undefined) return work(options.parent);
  const span = collecting(name, options);
  try {
    const result = await work(span.trace);
    span.end();
    return result;
  } catch (error) {
    span.end(asBacktalkError(error).code);
    throw error;
  }
}

const idFields = ['turn', 'session', 'policy', 'version', 'number', 'verdict'] as const;

/** The ids among the fields of a message. */
export function idsOf(message: object): Record<string, string | number> {
  const found: Record<string, string | number> = {};
  for (const field of idFields) {
    const value: unknown = Reflect.get(message, field);
    if ((typeof value === 'string' && value !== '') || typeof value === 'number') found[`backtalk.${field}`] = value;
  }
  return found;
}
