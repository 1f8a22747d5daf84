import { newTrace, type Trace } from '@backtalk/kit';
import { freePort, until } from '@backtalk/kit/testing';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { metric } from '../loop/controls.js';
import { startTestMachine, type TestMachine } from '../loop/machine.js';
import { ask, type Message } from '../loop/talk.js';
import { SpanSink } from './span-sink.js';

const sink = new SpanSink();
const canary = 'marzipan-lighthouse';
let machine: TestMachine;

beforeAll(async () => {
  const port = await freePort();
  await sink.start(port);
  machine = await startTestMachine({
    engine: 'stand-in',
    training: 'stand-in',
    environment: {
      all: { OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${String(port)}` },
      trainer: { BACKTALK_RECIPE_SET: 'effective=2,effectiveMin=2' },
    },
  });
});

afterAll(async () => {
  await machine?.stop();
  sink.stop();
});

/** A question in one trace, and its correction in another, as clients do that trace each request. */
async function correct(about: string, asked: Trace, corrected: Trace): Promise<void> {
  const { gateway } = machine;
  const messages: Message[] = [{ role: 'user', content: `What is ${about} made of, ${canary}?` }];
  const first = await ask(gateway, { messages, headers: { traceparent: asked.traceparent } });
  await ask(gateway, {
    messages: [
      ...messages,
      { role: 'assistant', content: first.text },
      { role: 'user', content: `Too long, ${canary}. Answer in one short sentence.` },
    ],
    headers: { traceparent: corrected.traceparent },
  });
}

it('one trace leads from a client’s request to the version that learned from it; a batch links the others', async () => {
  const [asked, corrected, askedToo, correctedToo] = [newTrace(), newTrace(), newTrace(), newTrace()];
  await correct('a kettle', asked, corrected);
  await until(async () => (await metric(machine, 'judge', 'backtalk_judge_turns_judged_total')) >= 1, {
    what: 'The first correction is judged',
    timeoutMs: 60_000,
  });
  await correct('a violin', askedToo, correctedToo);
  const served = () =>
    sink.of(asked.traceId).some(({ service, name }) => service.endsWith('gateway') && /commit/i.test(name));
  await until(async () => served(), { what: 'Routes were committed in this trace', timeoutMs: 90_000 });
  const wanted: readonly [string, RegExp][] = [
    ['gateway', /^chat_completions$/],
    ['gateway', /^ask engine$/],
    ['gateway', /^publish turnOpened$/],
    ['gateway', /^publish turnCompleted$/],
    ['collector', /^handle turnOpened$/],
    ['collector', /^publish turnContinued$/],
    ['judge', /^handle turnContinued$/],
    ['judge', /^job judge-votes/],
    ['judge', /^publish turnJudged$/],
    ['trainer', /^handle turnJudged$/],
    ['trainer', /^close batch$/],
    ['trainer', /^publish batchClosed$/],
    ['trainer', /^step$/],
    ['trainer', /Train$/],
    ['trainer', /^publish weightsTrained$/],
    ['publisher', /^swap$/],
    ['publisher', /^publish weightsStaged$/],
    ['loader', /Prepare$/],
    ['gateway', /Commit$/],
  ];
  const lacking = () =>
    wanted.filter(
      ([service, name]) =>
        !sink.of(asked.traceId).some((span) => span.service === `backtalk-${service}` && name.test(span.name)),
    );
  await until(async () => lacking().length === 0, { what: 'Every part has a span', timeoutMs: 60_000 }).catch(
    () => undefined,
  );
  expect(lacking()).toEqual([]);
  const spans = sink.of(asked.traceId);
  expect(spans.find(({ name }) => name === 'publish turnContinued')?.links).toEqual([corrected.traceId]);
  expect(spans.find(({ name }) => name === 'close batch')?.links).toEqual([askedToo.traceId]);
  // Each hangs on another of the same trace, or on the client's own span.
  const known = new Set([...spans.map(({ spanId }) => spanId), asked.traceparent.split('-')[2]]);
  expect(spans.filter(({ parentSpanId }) => !known.has(parentSpanId))).toEqual([]);
});

it('spans hold nothing that anybody wrote', () => {
  expect(sink.spans.length).toBeGreaterThan(20);
  expect(sink.text).not.toContain(canary);
});
