// The newest message of a subject or filter, by direct get: one request, no consumer. Out: the message, or nothing.
import type { MsgHdrs } from 'nats';
import type { Broker } from './connect.js';
import { brokerErrors } from './errors.js';

export async function lastOfSubject(
  broker: Broker,
  stream: string,
  subject: string,
  timeoutMs: number,
): Promise<StoredMessage | undefined> {
  const doing = `read ${stream}`;
  if (broker.status() === 'down') throw brokerErrors.brokerUnavailable({ doing });
  // The subject stands in the request's own subject, so that permissions can tell facts apart.
  const reply = await broker.ask({ subject: `$JS.API.DIRECT.GET.${stream}.${subject}`, timeoutMs, doing });
  const { headers } = reply;
  if (headers?.code === 404) return undefined;
  if (headers === undefined || headers.code >= 400) throw brokerErrors.brokerUnavailable({ doing });
  return {
    subject: headers.get('Nats-Subject'),
    sequence: Number(headers.get('Nats-Sequence')),
    timeMs: Date.parse(headers.get('Nats-Time-Stamp')),
    headers,
    data: reply.data,
  };
}

export interface StoredMessage {
  readonly subject: string;
  readonly sequence: number;
  /** The broker's time, milliseconds since 1970. */
  readonly timeMs: number;
  readonly headers: MsgHdrs | undefined;
  readonly data: Uint8Array;
}
