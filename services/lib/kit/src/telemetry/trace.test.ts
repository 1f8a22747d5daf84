import { describe, expect, it } from 'vitest';
import { childTrace, newTrace, traceFrom } from './trace.js';

const valid = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00';

describe('trace', () => {
  it('continues a valid header', () => {
    expect(traceFrom(valid)).toEqual({ traceparent: valid, traceId: '4bf92f3577b34da6a3ce929d0e0e4736' });
  });

  it('goes one span deeper in the same trace, with the same flags', () => {
    const child = childTrace(traceFrom(valid));
    expect(child.traceId).toBe('4bf92f3577b34da6a3ce929d0e0e4736');
    expect(child.traceparent).not.toBe(valid);
    expect(child.traceparent).toMatch(/-00$/);
  });

  it.each([undefined, '', 'nonsense', valid.toUpperCase(), `00-${'0'.repeat(32)}-00f067aa0ba902b7-01`])(
    'starts a new trace for the invalid header %s',
    (header) => {
      expect(traceFrom(header).traceparent).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/);
    },
  );

  it('gives every new trace its own id', () => {
    expect(newTrace().traceId).not.toBe(newTrace().traceId);
  });
});
