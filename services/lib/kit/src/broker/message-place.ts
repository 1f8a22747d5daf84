// Where a delivered message stands: read from the subject on which it is acknowledged. Pure.
import type { Msg } from 'nats';

export interface MessagePlace {
  readonly stream: string;
  readonly consumer: string;
  /** 1 at the first delivery. */
  readonly deliveries: number;
  readonly sequence: number;
  /** Of the consumer: gaps mean lost messages. */
  readonly consumerSequence: number;
  readonly timeMs: number;
  /** How many the consumer has yet to deliver. */
  readonly pending: number;
}

/** `$JS.ACK.<stream>.<consumer>.<deliveries>.<sequence>.<consumer sequence>.<time>.<pending>`, or with domain and account before the stream. */
export function placeOf(message: Msg): MessagePlace {
  const tokens = (message.reply ?? '').split('.');
  const at = tokens.length > 9 ? 4 : 2;
  const number = (offset: number) => Number(tokens[at + offset] ?? 0);
  return {
    stream: tokens[at] ?? '',
    consumer: tokens[at + 1] ?? '',
    deliveries: number(2),
    sequence: number(3),
    consumerSequence: number(4),
    timeMs: Math.floor(number(5) / 1e6),
    pending: number(6),
  };
}
