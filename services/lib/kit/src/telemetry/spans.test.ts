import { afterEach, describe, expect, it } from 'vitest';
import { defineErrors } from '../errors/backtalk-error.js';
import { collectSpans, idsOf, inSpan, isTracing, type SpanOptions, startSpan } from './spans.js';
import { childTrace, newTrace } from './trace.js';

const errors = defineErrors('test', { broke: { code: 'broke', retry: 'later', message: () => 'It broke.' } });
const parent = newTrace();
let stop: () => void = () => undefined;

interface Seen {
  readonly name: string;
  readonly options: SpanOptions;
  ended?: string;
}

function collect(): Seen[] {
  const seen: Seen[] = [];
  stop = collectSpans((name, options) => {
    const one: Seen = { name, options };
    seen.push(one);
    return {
      trace: childTrace(options.parent),
      end: (failure = 'well') => {
        one.ended = failure;
      },
    };
  });
  return seen;
}

afterEach(() => {
  stop();
});

describe('spans', () => {
  it('spans hand the trace on as it is while they are not collected', async () => {
    expect(isTracing()).toBe(false);
    expect(startSpan('a', { kind: 'internal', parent }).trace).toBe(parent);
    expect(await inSpan('a', { kind: 'internal', parent }, async (trace) => trace)).toBe(parent);
  });

  it('spans last as long as the work, and go one deeper in the same trace', async () => {
    const seen = collect();
    const inside = await inSpan('a', { kind: 'internal', parent }, async (trace) => {
      expect(seen[0]?.ended).toBeUndefined();
      return trace;
    });
    expect(inside.traceId).toBe(parent.traceId);
    expect(inside.traceparent).not.toBe(parent.traceparent);
    expect(seen.map(({ name, ended }) => ({ name, ended }))).toEqual([{ name: 'a', ended: 'well' }]);
  });

  it('spans fail with the code of the error, and let it through', async () => {
    const seen = collect();
    const work = inSpan('a', { kind: 'internal', parent }, () => Promise.reject(errors.broke({})));
    await expect(work).rejects.toMatchObject({ code: 'broke' });
    expect(seen[0]?.ended).toBe('broke');
  });

  it('spans take ids of a message, and no text of a user', () => {
    const message = { turn: 'turn_1', policy: 'p', text: 'secret', nextState: [{ text: 'secret' }], verdict: -1 };
    expect(idsOf(message)).toEqual({ 'backtalk.turn': 'turn_1', 'backtalk.policy': 'p', 'backtalk.verdict': -1 });
  });
});
