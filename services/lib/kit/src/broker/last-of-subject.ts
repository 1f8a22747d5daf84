// The newest message of a subject or filter, by direct get: one request, no consumer. Out: the message, or nothing. Any copy of
// the stream answers a direct get, also one that lags: who acts on an absence has the leader asked as well.
import { NatsError, type MsgHdrs } from 'nats';
import { systemClock } from '../time/clock.js';
import type { Broker } from './connect.js';
import { brokerErrors } from './errors.js';
import { brokerError } from './translate.js';

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

/** As `lastOfSubject`; what no copy at hand has, the stream's leader is asked for. Needs the right to read the whole stream. */
export async function surelyLastOfSubject(
  broker: Broker,
  stream: string,
  subject: string,
  timeoutMs: number,
): Promise<StoredMessage | undefined> {
  return (await lastOfSubject(broker, stream, subject, timeoutMs)) ?? newestInStream(broker, stream, subject);
}

/** As the stream's leader has it. Needs the right to read the whole stream. */
export async function newestInStream(
  broker: Broker,
  stream: string,
  subject: string,
): Promise<StoredMessage | undefined> {
  try {
    const found = await broker.jsm.streams.getMessage(stream, { last_by_subj: subject });
    const { seq: sequence, time, header: headers, data } = found;
    return { subject: found.subject, sequence, timeMs: time.getTime(), headers, data };
  } catch (error) {
    if (error instanceof NatsError && error.api_error?.err_code === noMessageFound) return undefined;
    throw brokerError(error, { doing: `read ${stream}`, stream });
  }
}

/**
 * As `lastOfSubject`, for those who may not read the whole stream: its leader says which subjects it holds, and a copy that lacks
 * one of those is asked again.
 */
export async function lastOfSubjectKnown(
  broker: Broker,
  stream: string,
  subject: string,
  timeoutMs: number,
): Promise<StoredMessage | undefined> {
  const deadlineMs = systemClock.now() + timeoutMs;
  for (;;) {
    const found = await lastOfSubject(broker, stream, subject, timeoutMs);
    if (found !== undefined || !(await isHeld(broker, stream, subject))) return found;
    if (systemClock.now() > deadlineMs) throw brokerErrors.brokerUnavailable({ doing: `read ${stream}` });
    await systemClock.sleep(askAgainMs);
  }
}

const askAgainMs = 20;

async function isHeld(broker: Broker, stream: string, subject: string): Promise<boolean> {
  try {
    const { state } = await broker.jsm.streams.info(stream, { subjects_filter: subject });
    return Object.keys(state.subjects ?? {}).length > 0;
  } catch (error) {
    throw brokerError(error, { doing: `read ${stream}`, stream });
  }
}

const noMessageFound = 10037;

export interface StoredMessage {
  readonly subject: string;
  readonly sequence: number;
  /** The broker's time, milliseconds since 1970. */
  readonly timeMs: number;
  readonly headers: MsgHdrs | undefined;
  readonly data: Uint8Array;
}
