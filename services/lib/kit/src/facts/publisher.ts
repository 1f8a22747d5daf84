// Stores facts, each with the sequence it expects to follow, so that a repeat changes nothing and a race has one winner.
// In: a fact's name and message. Out: where it is stored and whether it was there before. It waits for the broker no
// longer than its timeout, and never keeps a fact back to send it later.
import { blobErrors, type BlobStore } from '../blobs/blob-store.js';
import type { Broker } from '../broker/connect.js';
import { lastOfSubject } from '../broker/last-of-subject.js';
import { storeMessage } from '../broker/store-message.js';
import { sha256Hex } from '../identity/ids.js';
import { idsOf, inSpan, isTracing } from '../telemetry/spans.js';
import type { Trace } from '../telemetry/trace.js';
import { catalogue, type FactMessage, type FactName, type FactWriter } from '../topology/catalogue.js';
import { subjectErrors, subjectOf } from '../topology/subjects.js';
import { factErrors } from './errors.js';
import { LogRoom } from './log-room.js';
import { boundedStream, namePayload } from './payloads.js';
import { blobHeader, type FactHeaders, headersFor } from './stored-fact.js';

interface PublisherOptions {
  /** How long one publish may wait for the broker. */
  readonly timeoutMs?: number;
  /** Where payloads above 900 kB go; without it they are refused as too large. */
  readonly blobs?: BlobStore;
}

interface PublishOptions {
  /** Added to those that follow from the message (turn, parent, answer key, session, policy). */
  readonly headers?: FactHeaders;
  readonly trace?: Trace;
  /** Other traces that come together in this fact. */
  readonly links?: readonly Trace[];
  /** Chains only: sequence of the last fact of this subject, 0 for the first. */
  readonly expectSequence?: number;
  readonly timeoutMs?: number;
  /** How long the fact may wait for others to share its packet; for facts that no caller waits for. */
  readonly companyMs?: number | undefined;
}

export interface Published {
  readonly sequence: number;
  /** `before`: the very same fact was in the log already. */
  readonly stored: 'now' | 'before';
}

/** Below the broker's usual payload limit of 1 MB, headers included. */
const inlineBytesMax = 900_000;

export class FactPublisher {
  private readonly timeoutMs: number;
  private readonly blobs: BlobStore | undefined;
  private readonly room: LogRoom | undefined;

  constructor(
    private readonly broker: Broker,
    { timeoutMs = 5_000, blobs }: PublisherOptions = {},
  ) {
    this.timeoutMs = timeoutMs;
    this.blobs = blobs;
    this.room = blobs && new LogRoom(broker);
  }

  async publish<N extends FactName>(
    name: N,
    message: FactMessage<N>,
    options: PublishOptions = {},
  ): Promise<Published> {
    const { trace: parent, links = [] } = options;
    if (parent === undefined || !isTracing()) return this.store(name, message, options);
    return inSpan(`publish ${name}`, { kind: 'producer', parent, links, attributes: idsOf(message) }, (trace) =>
      this.store(name, message, { ...options, trace }),
    );
  }

  private async store<N extends FactName>(
    name: N,
    message: FactMessage<N>,
    { headers: given, trace, expectSequence, timeoutMs = this.timeoutMs, companyMs }: PublishOptions,
  ): Promise<Published> {
    const { stream, kind, bytesMax } = catalogue[name];
    const subject = subjectOf(name, message);
    const isChain = kind === 'chain';
    if (isChain !== (expectSequence !== undefined))
      throw subjectErrors.factInvalid({ fact: name, field: 'expectSequence' });
    const expected = expectSequence ?? 0;
    const headers = headersFor(message, given, trace);
    let bytes = encodeFact(name, message);
    // A large payload goes to the blob store first; the fact then carries its digest.
    if (bytes.byteLength > inlineBytesMax) {
      if (bytes.byteLength > bytesMax) throw factErrors.factTooLarge({ fact: name, bytes: bytes.byteLength, bytesMax });
      if (this.blobs === undefined) throw blobErrors.blobStoreAbsent();
      if (stream === boundedStream) await this.room?.admitPayload(bytes.byteLength);
      await namePayload(this.broker, stream, sha256Hex(bytes), { subject, bytes: bytes.byteLength });
      headers.set(blobHeader, await this.blobs.put(bytes));
      bytes = new Uint8Array();
    } else if (stream === boundedStream) await this.room?.admitFact(bytes.byteLength);
    const doing = `publish ${name}`;
    const outgoing = { subject, stream, data: bytes, headers, expectLast: expected, timeoutMs, companyMs, doing };
    const stored = await storeMessage(this.broker, outgoing);
    if (!stored.refused) return { sequence: stored.sequence, stored: 'now' };
    // Another publish was first: for `once` that is the same fact; in a chain it may be this very message, its ack lost.
    if (kind === 'once' && stored.last !== undefined) return { sequence: stored.last, stored: 'before' };
    const last = await lastOfSubject(this.broker, stream, subject, timeoutMs);
    if (last !== undefined) {
      const sameBlob = (last.headers?.get(blobHeader) ?? '') === headers.get(blobHeader);
      const same = kind === 'once' || (sameBlob && Buffer.compare(last.data, bytes) === 0);
      if (same) return { sequence: last.sequence, stored: 'before' };
    }
    throw factErrors.factSuperseded({ fact: name, expected });
  }
}

/** A writer that was made larger than this by one fact is not kept for the next. */
const keptBytesMax = 1024 * 1024;

let idle: FactWriter | undefined;

function encodeFact<N extends FactName>(name: N, message: FactMessage<N>): Uint8Array {
  const writer = idle;
  // One that fails half-way is left behind with what it wrote.
  idle = undefined;
  const used = catalogue[name].codec.encode(message, writer);
  const bytes = used.finish();
  if (bytes.byteLength <= keptBytesMax) idle = used;
  return bytes;
}
