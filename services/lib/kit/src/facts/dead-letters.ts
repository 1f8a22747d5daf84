// Facts that could not be handled: a bounded stream of references, each with a reason and never with text.
// In: a failed delivery. Out: a dead letter, which an operator lists, replays to the one service that failed, or drops.
import { headers as natsHeaders, type MsgHdrs } from 'nats';
import type { Broker } from '../broker/connect.js';
import { readStream } from '../broker/read-stream.js';
import { storeMessage } from '../broker/store-message.js';
import { brokerError } from '../broker/translate.js';
import { deadStream, replayStream } from '../topology/streams.js';
import { factErrors } from './errors.js';
import { traceHeader } from './stored-fact.js';

export interface DeadLetter {
  /** Names it: sequence in the stream of dead letters. */
  readonly sequence: number;
  readonly timeMs: number;
  readonly service: string;
  /** Code of the error. */
  readonly reason: string;
  readonly durable: string;
  readonly deliveries: number;
  /** Where the fact itself is. */
  readonly fact: { readonly stream: string; readonly subject: string; readonly sequence: number };
  readonly traceparent: string;
}

type NewDeadLetter = Omit<DeadLetter, 'sequence' | 'timeMs'>;

export interface DeadLetters {
  /** All that the stream holds, oldest first. */
  list(options?: { readonly service?: string }): Promise<DeadLetter[]>;
  /** Gives the fact to the service once more, with a fresh count of tries, and removes the dead letter. */
  replay(sequence: number): Promise<void>;
  discard(sequence: number): Promise<void>;
  count(): Promise<number>;
}

const names = {
  durable: 'Backtalk-Dead-Durable',
  deliveries: 'Backtalk-Dead-Deliveries',
  stream: 'Backtalk-Dead-Stream',
  subject: 'Backtalk-Dead-Subject',
  sequence: 'Backtalk-Dead-Sequence',
} as const;

const publishTimeoutMs = 5_000;

export function deadLetters(broker: Broker): DeadLetters {
  const discard = async (sequence: number) => {
    try {
      await broker.jsm.streams.deleteMessage(deadStream, sequence, false);
    } catch (error) {
      throw brokerError(error, { doing: 'remove a dead letter', stream: deadStream });
    }
  };
  return {
    discard,
    list: async ({ service } = {}) => {
      const filter = service === undefined ? 'backtalk.dead.>' : `backtalk.dead.${service}.>`;
      const { state } = await broker.jsm.streams.info(deadStream);
      return readLetters(broker, filter, 1, state.last_seq);
    },
    replay: async (sequence) => {
      const [letter] = await readLetters(broker, 'backtalk.dead.>', sequence, sequence);
      if (letter === undefined) throw factErrors.deadLetterGone({ sequence });
      await send(broker, `backtalk.replay.${letter.service}.${letter.durable}`, letter, `replay-${sequence}`);
      await discard(sequence);
    },
    count: async () => {
      const { state } = await broker.jsm.streams.info(deadStream);
      return state.messages;
    },
  };
}

/** `id` keeps a crash between this and the end of the delivery from making two dead letters of one. */
export async function writeDeadLetter(broker: Broker, letter: NewDeadLetter, id: string): Promise<void> {
  await send(broker, `backtalk.dead.${letter.service}.${letter.reason}`, letter, id);
}

/** Where the fact is that a dead letter or its replay points to. */
export function pointerIn(headers: MsgHdrs | undefined): DeadLetter['fact'] {
  return {
    stream: headers?.get(names.stream) ?? '',
    subject: headers?.get(names.subject) ?? '',
    sequence: Number(headers?.get(names.sequence) ?? 0),
  };
}

async function send(broker: Broker, subject: string, letter: NewDeadLetter, id: string): Promise<void> {
  const headers = natsHeaders();
  headers.set(names.durable, letter.durable);
  headers.set(names.deliveries, String(letter.deliveries));
  headers.set(names.stream, letter.fact.stream);
  headers.set(names.subject, letter.fact.subject);
  headers.set(names.sequence, String(letter.fact.sequence));
  if (letter.traceparent !== '') headers.set(traceHeader, letter.traceparent);
  const stream = subject.startsWith('backtalk.dead.') ? deadStream : replayStream;
  const message = { subject, stream, data: new Uint8Array(), headers, id, timeoutMs: publishTimeoutMs };
  await storeMessage(broker, { ...message, doing: 'store a dead letter' });
}

async function readLetters(broker: Broker, filter: string, from: number, until: number): Promise<DeadLetter[]> {
  const letters: DeadLetter[] = [];
  const reading = { broker, stream: deadStream, filter, from, until, headersOnly: true };
  for await (const { subject, sequence, timeMs, headers } of readStream(reading)) {
    const [, , service = '', reason = ''] = subject.split('.');
    letters.push({
      sequence,
      timeMs,
      service,
      reason,
      durable: headers?.get(names.durable) ?? '',
      deliveries: Number(headers?.get(names.deliveries) ?? 0),
      fact: pointerIn(headers),
      traceparent: headers?.get(traceHeader) ?? '',
    });
  }
  return letters;
}
