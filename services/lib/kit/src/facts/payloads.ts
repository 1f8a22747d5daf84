// Payloads of facts that are too large for the log lie in the blob store, and go when their fact has gone: by age, by a trim, by an
// erasure. In: bucket `payloads`, in which a writer names the blob and its fact before it puts the blob. Out: blobs deleted whose fact
// the log holds no more. Only what stands in that bucket is ever deleted, and nothing that was named within the grace.
import { z } from 'zod';
import type { BlobStore } from '../blobs/blob-store.js';
import type { Broker } from '../broker/connect.js';
import { brokerErrors } from '../broker/errors.js';
import { surelyLastOfSubject } from '../broker/last-of-subject.js';
import { readStream } from '../broker/read-stream.js';
import { brokerError } from '../broker/translate.js';
import { isBacktalkError } from '../errors/backtalk-error.js';
import { jsonCodec, kvBucket, type KvBucket } from '../kv/kv-bucket.js';
import { systemClock, within } from '../time/clock.js';
import { bucketStream, bucketSubject } from '../topology/buckets.js';
import { catalogue, factNames, type FactStream, mayRead } from '../topology/catalogue.js';
import { subjectFilter } from '../topology/subjects.js';
import { blobHeader } from './stored-fact.js';

/** Facts of the other stream are kept, and their payloads with them. */
export const boundedStream: FactStream = 'TURNS';
const stream = boundedStream;
const bucket = 'payloads';
const askTimeoutMs = 5_000;

const payloadSchema = z.object({ subject: z.string(), bytes: z.number().int().min(0) });
type Payload = z.infer<typeof payloadSchema>;

function payloads(broker: Broker): KvBucket<Payload> {
  return kvBucket<Payload>(broker, bucket, jsonCodec(payloadSchema));
}

/** Before the blob is put. Again for the same blob: its grace begins anew. */
export async function namePayload(broker: Broker, factStream: string, digest: string, payload: Payload): Promise<void> {
  if (factStream === stream) await payloads(broker).put(digest, payload);
}

export interface PayloadSweep {
  readonly swept: number;
  /** Of the payloads that stay. */
  readonly bytes: number;
}

/** @param youngestMs what was named later stays: its writer may be about to store the fact */
export async function sweepPayloads(broker: Broker, blobs: BlobStore, youngestMs: number): Promise<PayloadSweep> {
  let swept = 0;
  let bytes = 0;
  const reading = { broker, stream: bucketStream(bucket), filter: bucketSubject(bucket, '>') };
  for await (const { subject, sequence, timeMs, data } of readStream(reading)) {
    const digest = subject.slice(bucketSubject(bucket, '').length);
    const payload = readPayload(data);
    if (payload === undefined) continue;
    if (timeMs <= youngestMs && !(await isNamed(broker, payload.subject, digest))) {
      if (await sweepPayload(broker, blobs, { digest, subject, sequence })) swept += 1;
    } else bytes += payload.bytes;
  }
  return { swept, bytes };
}

/** Of all payloads that are named: they count against the bound of the log. */
export async function namedPayloadBytes(broker: Broker): Promise<number> {
  const bytes = await within(systemClock, askTimeoutMs, addPayloads(broker, AbortSignal.timeout(2 * askTimeoutMs)));
  if (bytes === undefined) throw brokerErrors.brokerUnavailable({ doing: 'add up payloads of facts' });
  return bytes;
}

async function addPayloads(broker: Broker, signal: AbortSignal): Promise<number> {
  const { state } = await broker.jsm.streams.info(bucketStream(bucket));
  if (state.messages === 0) return 0;
  let bytes = 0;
  const reading = { broker, stream: bucketStream(bucket), filter: bucketSubject(bucket, '>'), signal };
  for await (const { data } of readStream(reading)) bytes += readPayload(data)?.bytes ?? 0;
  return bytes;
}

/** Of a payload that is named; 0 where its size is not known. */
export async function payloadBytes(broker: Broker, digest: string): Promise<number> {
  return (await payloads(broker).get(digest))?.value.bytes ?? 0;
}

/** With its fact, which was deleted: no sweep has to find it. */
export async function dropPayload(broker: Broker, blobs: BlobStore, digest: string): Promise<void> {
  const subject = bucketSubject(bucket, digest);
  const entry = await surelyLastOfSubject(broker, bucketStream(bucket), subject, askTimeoutMs);
  if (entry === undefined) await blobs.delete(digest);
  else await sweepPayload(broker, blobs, { digest, subject, sequence: entry.sequence });
}

/** Names the payloads of facts that were stored before there was the bucket: of those that the trainer may read, which sweeps. */
export async function adoptPayloads(broker: Broker): Promise<number> {
  const known = payloads(broker);
  const names = factNames.filter((name) => catalogue[name].stream === stream && mayRead('trainer', name));
  let adopted = 0;
  for (const name of names) {
    for await (const { subject, headers } of readStream({
      broker,
      stream,
      filter: subjectFilter(name),
      headersOnly: true,
    })) {
      const digest = headers?.get(blobHeader) ?? '';
      if (digest === '' || (await known.get(digest)) !== undefined) continue;
      await known.put(digest, { subject, bytes: 0 });
      adopted += 1;
    }
  }
  return adopted;
}

function readPayload(data: Uint8Array): Payload | undefined {
  const json: unknown = JSON.parse(new TextDecoder().decode(data));
  return payloadSchema.safeParse(json).data;
}

async function isNamed(broker: Broker, subject: string, digest: string): Promise<boolean> {
  const fact = await surelyLastOfSubject(broker, stream, subject, askTimeoutMs);
  return fact?.headers?.get(blobHeader) === digest;
}

interface Entry {
  readonly digest: string;
  readonly subject: string;
  readonly sequence: number;
}

/**
 * The name goes first, and only in the state that was looked at; then the blob. A writer that names it anew in between finds its blob
 * put back: it names before it puts, so that either its name is seen here, or its put comes after the deletion.
 */
async function sweepPayload(broker: Broker, blobs: BlobStore, { digest, subject, sequence }: Entry): Promise<boolean> {
  const content = await blobs.get(digest).catch((error: unknown) => {
    if (isBacktalkError(error, 'blob_missing') || isBacktalkError(error, 'blob_corrupt')) return undefined;
    throw error;
  });
  const named = bucketStream(bucket);
  try {
    const { purged } = await broker.jsm.streams.purge(named, { filter: subject, seq: sequence + 1 });
    if (purged === 0) return false;
  } catch (error) {
    throw brokerError(error, { doing: 'sweep payloads of facts', stream: named });
  }
  await blobs.delete(digest);
  if ((await surelyLastOfSubject(broker, named, subject, askTimeoutMs)) === undefined) return true;
  if (content !== undefined) await blobs.put(content);
  return false;
}
