// A fact as the log has it, and its two translations: message to wire, wire to message.
// What goes on the wire: protobuf, small headers of ids, and a digest in place of a payload that is too large.
import type { Consent } from '@backtalk/proto/facts';
import type { MsgHdrs } from 'nats';
import { blobErrors, type BlobStore } from '../blobs/blob-store.js';
import type { StoredMessage } from '../broker/last-of-subject.js';
import { PlainHeaders } from '../broker/store-message.js';
import { type Trace, traceFrom } from '../telemetry/trace.js';
import { catalogue, type FactMessage, type FactName } from '../topology/catalogue.js';
import { factErrors } from './errors.js';

/** Ids by which indexes are rebuilt without reading any payload. */
export interface FactHeaders {
  readonly turn?: string;
  readonly parent?: string;
  readonly answerKey?: string;
  readonly session?: string;
  readonly policy?: string;
  readonly continuedBy?: string;
  /** Consent to learning: "no", "yes" where the person said so, "default" where nothing was said; absent in facts of before. */
  readonly train?: string;
  /** What a person did in place of saying anything; absent where something was said. */
  readonly act?: string;
}

interface FactPlace {
  /** Of the stream: the order of facts. */
  readonly sequence: number;
  /** The broker's time, milliseconds since 1970. */
  readonly timeMs: number;
  readonly headers: FactHeaders;
  readonly trace: Trace;
  readonly subject: string;
}

/** For several names, a union discriminated by `name`. */
export type StoredFact<N extends FactName> = {
  readonly [K in N]: FactPlace & { readonly name: K; readonly message: FactMessage<K> };
}[N];

const headerNames: Readonly<Record<keyof FactHeaders, string>> = {
  turn: 'Backtalk-Turn',
  parent: 'Backtalk-Parent',
  answerKey: 'Backtalk-Answer-Key',
  session: 'Backtalk-Session',
  policy: 'Backtalk-Policy',
  continuedBy: 'Backtalk-Continued-By',
  train: 'Backtalk-Train',
  act: 'Backtalk-Act',
};
const headerKeys = ['turn', 'parent', 'answerKey', 'session', 'policy', 'continuedBy', 'train', 'act'] as const;
export const blobHeader = 'Backtalk-Blob';
export const traceHeader = 'traceparent';

/** The fields of messages that say the same as a header does, in the order of trust; of a list, its last item does. */
const headerFields: Readonly<Record<keyof FactHeaders, readonly string[]>> = {
  turn: ['turn'],
  parent: ['parent', 'provisionalParent'],
  answerKey: ['answerKey', 'answerKeys'],
  session: ['session', 'provisionalSession'],
  policy: ['policy'],
  continuedBy: ['continuedBy'],
  train: ['consent'],
  act: ['act'],
};

/** Headers that follow from the message itself; those given win. */
export function headersFor<N extends FactName>(
  message: FactMessage<N>,
  given: FactHeaders = {},
  trace?: Trace,
): MsgHdrs {
  const made = new PlainHeaders();
  for (const key of headerKeys) {
    const value = given[key] ?? '';
    const text = value === '' ? firstText(message, headerFields[key]) : value;
    if (text !== '') made.set(headerNames[key], text);
  }
  if (trace !== undefined) made.set(traceHeader, trace.traceparent);
  return made;
}

/** The first of these fields that says something. */
function firstText(message: object, fields: readonly string[]): string {
  for (const field of fields) {
    const value: unknown = Reflect.get(message, field);
    const last: unknown = Array.isArray(value) ? value.at(-1) : value;
    if (typeof last === 'string' && last !== '') return last;
    if (field === 'consent' && isConsent(value)) return trainOf(value);
  }
  return '';
}

/** How a consent stands in a header. */
function trainOf({ train, source }: Consent): string {
  if (!train) return 'no';
  return source === 'request' ? 'yes' : 'default';
}

function isConsent(value: unknown): value is Consent {
  return typeof value === 'object' && value !== null && 'train' in value;
}

export function fromNatsHeaders(headers: MsgHdrs | undefined): FactHeaders {
  const entries = headerKeys.map((key) => [key, headers?.get(headerNames[key]) ?? ''] as const);
  return Object.fromEntries(entries.filter(([, value]) => value !== ''));
}

export async function fromWire<N extends FactName>(
  name: N,
  stored: StoredMessage,
  blobs: BlobStore | undefined,
): Promise<StoredFact<N>> {
  const { subject, sequence, timeMs } = stored;
  const digest = stored.headers?.get(blobHeader) ?? '';
  let bytes = stored.data;
  if (digest !== '') {
    if (blobs === undefined) throw blobErrors.blobStoreAbsent();
    bytes = await blobs.get(digest);
  }
  let message: FactMessage<N>;
  try {
    message = catalogue[name].codec.decode(bytes);
  } catch (error) {
    throw factErrors.factUndecodable({ fact: name, sequence }, error);
  }
  const headers = fromNatsHeaders(stored.headers);
  return { name, message, sequence, timeMs, headers, trace: traceFrom(stored.headers?.get(traceHeader)), subject };
}
