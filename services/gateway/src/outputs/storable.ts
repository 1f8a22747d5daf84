// One fact on its way to the log, by the broker or by the spool.
//
// In: a fact's name and message. Out: how to publish it, and how to write it down until that is possible. Publishing it
// twice is harmless: its subject takes one message.
import { catalogue, traceFrom, type FactMessage, type FactPublisher, type Trace } from '@backtalk/kit';
import type { SpooledFact, SpoolRecord } from '../domain/spool-record.js';

export interface Storable {
  /** With `batchMs` it may wait that long for others to share its packet. */
  publish(timeoutMs: number, batchMs?: number): Promise<unknown>;
  record(): SpoolRecord;
}

export function storable<N extends SpooledFact>(
  publisher: FactPublisher,
  name: N,
  message: FactMessage<N>,
  trace: Trace,
): Storable {
  return {
    publish: (timeoutMs, batchMs) => publisher.publish(name, message, { trace, timeoutMs, companyMs: batchMs }),
    record: () => ({
      name,
      traceparent: trace.traceparent,
      message: catalogue[name].codec.encode(message).finish(),
    }),
  };
}

export function storableOf(publisher: FactPublisher, { name, traceparent, message }: SpoolRecord): Storable {
  const trace = traceFrom(traceparent);
  switch (name) {
    case 'turnOpened':
      return storable(publisher, name, catalogue[name].codec.decode(message), trace);
    case 'turnCompleted':
      return storable(publisher, name, catalogue[name].codec.decode(message), trace);
    case 'turnWithheld':
      return storable(publisher, name, catalogue[name].codec.decode(message), trace);
    case 'sessionEnded':
      return storable(publisher, name, catalogue[name].codec.decode(message), trace);
  }
}
