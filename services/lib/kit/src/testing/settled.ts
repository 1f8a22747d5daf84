import type { Broker } from '../broker/connect.js';
import { lastOfSubject } from '../broker/last-of-subject.js';

/**
 * How many facts a consumer has not settled, delivered or not. The broker counts a fact a moment after it has confirmed the
 * store of it: the newest counts here all the same.
 */
export async function openFacts(broker: Broker, stream: string, durable: string): Promise<number> {
  const { config, delivered, num_pending, num_ack_pending } = await broker.jsm.consumers.info(stream, durable);
  const newest = await lastOfSubject(broker, stream, config.filter_subject ?? '>', 5_000);
  const isUncounted = num_pending === 0 && (newest?.sequence ?? 0) > delivered.stream_seq;
  return num_pending + num_ack_pending + Number(isUncounted);
}

/** Whether consumers have settled all that their stream holds for them. */
export async function haveSettledAll(broker: Broker, stream: string, durables: readonly string[]): Promise<boolean> {
  const open = await Promise.all(durables.map((durable) => openFacts(broker, stream, durable)));
  return open.every((facts) => facts === 0);
}
