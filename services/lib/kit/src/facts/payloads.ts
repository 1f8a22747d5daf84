// Payloads of facts that are too large for the log lie in the blob store, and go when their fact has gone: by age, by a trim, by an
// erasure. In: bucket `payloads`, in which a writer names the blob and its fact before it puts the blob. Out: blobs deleted whose fact
// the log holds no more. Only what stands in that bucket is ever deleted, and nothing that was named within the grace.
import { z } from 'zod';
import type { BlobStore } from '../blobs/blob-store.js';
import type { Broker } from '../broker/connect.js';
import { brokerErrors } from '../broker/errors.js';
import { lastOfSubjectKnown, surelyLastOfSubject } from '../broker/last-of-subject.js';
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

const payloadSchema = z.object({
  subject: z.string(),
  bytes: z.number().int().min(0),
  /** Of its fact, where that is another than the bounded one. */
  stream: z.literal('WEIGHTS').optional(),
  /** It is going: no writer's name, so that no grace holds, and it stands until the blob is deleted, whatever breaks off before. */
  isGoing: z.boolean().optional(),
});
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

/** @param youngestMs what was named later stays, unless it is going: its writer may be about to store the fact */
export async function sweepPayloads(broker: Broker, blobs: BlobStore, youngestMs: number): Promise<PayloadSweep> {
  let swept = 0;
  let bytes = 0;
  const reading = { broker, stream: bucketStream(bucket), filter: bucketSubject(bucket, '>') };
  for await (const { subject, sequence, timeMs, data } of readStream(reading)) {
    const digest = subject.slice(bucketSubject(bucket, '').length);
    const payload = readPayload(data);
    if (payload === undefined) continue;
    const isDue = payload.isGoing === true || timeMs <= youngestMs;
    if (isDue && !(await isNamed(broker, payload, digest))) {
      if (await sweepPayload(broker, blobs, { digest, payload, sequence })) swept += 1;
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

/**
 * Before its fact is deleted: when that breaks off afterwards, the next sweep finds the blob.
 *
 * @param subject of its fact in the stream of weights, whose payloads have no names before
 */
export async function markGoing(broker: Broker, digest: string, subject?: string): Promise<void> {
  const entry = await payloads(broker).get(digest);
  const own: Payload | undefined = subject === undefined ? undefined : { subject, bytes: 0, stream: 'WEIGHTS' };
  const payload = entry?.value ?? own;
  if (payload !== undefined) await markEntry(broker, { digest, payload, sequence: entry?.revision ?? 0 });
}

/** With its fact, which was deleted: no sweep has to find it. */
export async function dropPayload(broker: Broker, blobs: BlobStore, digest: string): Promise<void> {
  const subject = bucketSubject(bucket, digest);
  const entry = await surelyLastOfSubject(broker, bucketStream(bucket), subject, askTimeoutMs);
  const payload = entry && readPayload(entry.data);
  if (payload === undefined) await blobs.delete(digest);
  else await sweepPayload(broker, blobs, { digest, payload, sequence: entry?.sequence ?? 0 });
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

async function isNamed(broker: Broker, { subject, stream: other }: Payload, digest: string): Promise<boolean> {
  if (other === undefined) {
    const fact = await lastOfSubjectKnown(broker, stream, subject, askTimeoutMs);
    return fact?.headers?.get(blobHeader) === digest;
  }
  // A chain: the fact need not be the newest.
  for await (const { headers } of readStream({ broker, stream: other, filter: subject, headersOnly: true }))
    if (headers?.get(blobHeader) === digest) return true;
  return false;
}

interface Entry {
  readonly digest: string;
  readonly payload: Payload;
  readonly sequence: number;
}

/** In the state that was looked at. Out: where it stands now; undefined where a writer was first. */
async function markEntry(broker: Broker, { digest, payload, sequence }: Entry): Promise<number | undefined> {
  try {
    return await payloads(broker).update(digest, { ...payload, isGoing: true }, sequence);
  } catch (error) {
    if (!isBacktalkError(error, 'kv_conflict')) throw error;
    return undefined;
  }
}

/**
 * The name goes last: what breaks off before is swept later. A writer that names it anew in between finds its blob put back: it names
 * before it puts, so that either its name is seen here, or its put comes after the deletion.
 */
async function sweepPayload(broker: Broker, blobs: BlobStore, entry: Entry): Promise<boolean> {
  const { digest } = entry;
  const content = await blobs.get(digest).catch((error: unknown) => {
    if (isBacktalkError(error, 'blob_missing') || isBacktalkError(error, 'blob_corrupt')) return undefined;
    throw error;
  });
  const going = await markEntry(broker, entry);
  if (going === undefined) return false;
  await blobs.delete(digest);
  const subject = bucketSubject(bucket, digest);
  const named = bucketStream(bucket);
  try {
    await broker.jsm.streams.purge(named, { filter: subject, seq: going + 1 });
  } catch (error) {
    throw brokerError(error, { doing: 'sweep payloads of facts', stream: named });
  }
  if ((await surelyLastOfSubject(broker, named, subject, askTimeoutMs)) === undefined) return true;
  if (content !== undefined) await blobs.put(content);
  return false;
}
