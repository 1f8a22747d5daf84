// Trace context of W3C, enough to follow one turn through every service. In: a `traceparent` header, perhaps.
// Out: one to send on. The ids go into log lines and headers; spans.ts says what took how long.
import { randomBytes } from 'node:crypto';

export interface Trace {
  /** `00-<trace id>-<span id>-<flags>`, as sent in headers. */
  readonly traceparent: string;
  readonly traceId: string;
}

const traceparentPattern = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;

export function newTrace(): Trace {
  return traceOf(randomHex(16), randomHex(8), '01');
}

/** For calls that belong to no request, such as looks at a peer's state: no collector keeps them. */
export function unfollowedTrace(): Trace {
  return traceOf(randomHex(16), randomHex(8), '00');
}

/** The same trace, one span deeper. */
export function childTrace(trace: Trace): Trace {
  return traceOf(trace.traceId, randomHex(8), trace.traceparent.slice(-2));
}

/** The caller's trace where the header is valid, a new one otherwise. */
export function traceFrom(header: string | undefined): Trace {
  const [, traceId, spanId, flags] = traceparentPattern.exec(header ?? '') ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return newTrace();
  // Zero ids are invalid by the standard.
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return newTrace();
  return traceOf(traceId, spanId, flags);
}

function traceOf(traceId: string, spanId: string, flags: string): Trace {
  return { traceId, traceparent: `00-${traceId}-${spanId}-${flags}` };
}

function randomHex(bytes: number): string {
  return randomBytes(bytes).toString('hex');
}
