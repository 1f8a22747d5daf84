// Stores one message in the stream that takes its subject. In: bytes, headers, the sequence it is expected to follow.
// Out: its sequence. It tries once.
import { NatsError, type MsgHdrs, MsgHdrsImpl } from 'nats';
import type { Broker } from './connect.js';
import { brokerErrors } from './errors.js';
import { brokerError } from './translate.js';

export interface NewMessage {
  readonly subject: string;
  readonly stream: string;
  readonly data: Uint8Array;
  readonly headers?: MsgHdrs;
  /** Sequence of the last message of this subject, 0 for none. */
  readonly expectLast?: number;
  /** A repeat with the same id within two minutes is not stored again. */
  readonly id?: string;
  readonly timeoutMs: number;
  readonly companyMs?: number | undefined;
  /** Words for people. */
  readonly doing: string;
}

type ApiError = NonNullable<NatsError['api_error']>;

interface Answer {
  readonly seq?: number;
  readonly error?: ApiError;
}

/** The message does not follow the one it was expected to. */
export interface Refused {
  readonly refused: true;
  /** Sequence of the last message of the subject, where the broker says it. */
  readonly last: number | undefined;
}

interface Stored {
  readonly refused: false;
  readonly sequence: number;
}

const jetStreamCode = {
  /** What follows is refused: the subject's last message is another one. */
  wrongLastSequence: 10071,
  /** In a cluster: another message of this subject is on its way to the copies, and neither is decided. */
  lastSequenceUndecided: 10164,
} as const;

export async function storeMessage(broker: Broker, message: NewMessage): Promise<Stored | Refused> {
  const { subject, stream, data, headers = new PlainHeaders(), expectLast, id, timeoutMs, companyMs, doing } = message;
  // The client would keep the message in memory until the broker is back: better to say so at once.
  if (broker.status() === 'down') throw brokerErrors.brokerUnavailable({ doing });
  if (expectLast !== undefined) headers.set('Nats-Expected-Last-Subject-Sequence', String(expectLast));
  if (id !== undefined) headers.set('Nats-Msg-Id', id);
  const reply = await broker.ask({ subject, data, headers, timeoutMs, companyMs, doing });
  const { seq, error } = reply.json<Answer>();
  if (seq !== undefined && error === undefined) return { refused: false, sequence: seq };
  if (error?.err_code === jetStreamCode.wrongLastSequence) {
    const [, digits] = /wrong last sequence: (\d+)/.exec(error.description) ?? [];
    return { refused: true, last: digits === undefined ? undefined : Number(digits) };
  }
  if (error?.err_code === jetStreamCode.lastSequenceUndecided) {
    throw brokerErrors.brokerUnavailable({ doing }, apiError(error));
  }
  throw brokerError(apiError(error), { doing, subject, stream });
}

/** An error as JetStream answers it, in the client's own form. */
export function apiError(error: ApiError | undefined): NatsError {
  const made = new NatsError(error?.description ?? 'no answer', String(error?.code ?? 0));
  if (error !== undefined) made.api_error = error;
  return made;
}

export class PlainHeaders extends MsgHdrsImpl {
  override set(name: string, value: string): void {
    this.headers.set(name, [MsgHdrsImpl.validHeaderValue(value)]);
  }

  override encode(): Uint8Array {
    if (this.headers.size === 0) return new Uint8Array(0);
    let text = 'NATS/1.0\r\n';
    for (const [name, [value = '']] of this.headers) text += `${name}: ${value}\r\n`;
    // Small buffers share one block of memory; the client's encoder asks for a block of its own for each.
    return Buffer.from(`${text}\r\n`);
  }
}
