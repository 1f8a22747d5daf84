// What time is it at the broker? Facts carry the broker's time, so that what is measured against them must, too: this
// service's own clock may be wrong.
import type { Broker } from '@backtalk/kit';
import { collectorErrors } from '../errors.js';

const stream = 'TURNS';

interface TimedAnswer {
  /** When the broker answered. */
  readonly ts?: string;
}

export async function brokerNowMs(broker: Broker): Promise<number> {
  const answer: TimedAnswer = await broker.jsm.streams.info(stream);
  const nowMs = Date.parse(answer.ts ?? '');
  if (Number.isNaN(nowMs)) throw collectorErrors.brokerTimeUnknown();
  return nowMs;
}
