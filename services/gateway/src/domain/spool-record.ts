// How is one fact written to the spool, and read back after a crash?
//
// In: a fact, or the bytes of a spool file. Out: a framed record (length, CRC-32, JSON head, message bytes), or all records
// that are whole. A write that was cut by a crash can only be the last one; what is broken before that is rot, and costs
// the record that it hit: reading goes on where its length says, or else at the next record that its checksum confirms. Pure.
import { crc32 } from 'node:zlib';
import { z } from 'zod';

/** Facts that the gateway may have to keep until the broker is back. */
const spooledFacts = ['turnOpened', 'turnCompleted', 'turnWithheld', 'sessionEnded'] as const;
export type SpooledFact = (typeof spooledFacts)[number];

const recordHead = z.object({
  name: z.enum(spooledFacts),
  traceparent: z.string(),
});

export interface SpoolRecord extends z.infer<typeof recordHead> {
  /** The encoded message. */
  readonly message: Uint8Array;
}

const frameBytes = 8;
const headLengthBytes = 4;
/** How every head begins, as `encodeRecord` writes it. */
const headStart = '{"name":"';

export function encodeRecord({ name, traceparent, message }: SpoolRecord): Buffer {
  const head = Buffer.from(JSON.stringify({ name, traceparent }));
  const bodyBytes = headLengthBytes + head.length + message.length;
  const record = Buffer.allocUnsafe(frameBytes + bodyBytes);
  record.writeUInt32LE(bodyBytes, 0);
  record.writeUInt32LE(head.length, frameBytes);
  record.set(head, frameBytes + headLengthBytes);
  record.set(message, frameBytes + headLengthBytes + head.length);
  record.writeUInt32LE(crc32(record.subarray(frameBytes)), 4);
  return record;
}

interface DecodedSpool {
  readonly records: readonly SpoolRecord[];
  /** Records, or runs of bytes, that were written and cannot be read. */
  readonly unreadable: number;
  /** Bytes at the end that form no whole record. */
  readonly tornBytes: number;
}

interface Frame {
  readonly end: number;
  /** Undefined where the frame is sound, and what is in it is no record of ours. */
  readonly record: SpoolRecord | undefined;
}

export function decodeRecords(bytes: Buffer): DecodedSpool {
  const records: SpoolRecord[] = [];
  let unreadable = 0;
  let offset = 0;
  while (offset < bytes.length) {
    const frame = frameAt(bytes, offset);
    if (frame?.record === undefined) unreadable += 1;
    else records.push(frame.record);
    const next = frame?.end ?? afterRot(bytes, offset);
    // Nothing whole follows: the last write was cut, unless all of it is there and broken.
    if (next === undefined) return { records, unreadable: unreadable - 1, tornBytes: bytes.length - offset };
    offset = next;
  }
  return { records, unreadable, tornBytes: 0 };
}

function frameAt(bytes: Buffer, offset: number): Frame | undefined {
  const end = endOf(bytes, offset);
  if (end === undefined) return undefined;
  const body = bytes.subarray(offset + frameBytes, end);
  return crc32(body) === bytes.readUInt32LE(offset + 4) ? { end, record: readBody(body) } : undefined;
}

/** Where the frame ends by its own word, if the file is long enough for that. */
function endOf(bytes: Buffer, offset: number): number | undefined {
  const start = offset + frameBytes;
  if (start + headLengthBytes > bytes.length) return undefined;
  const length = bytes.readUInt32LE(offset);
  return length < headLengthBytes || start + length > bytes.length ? undefined : start + length;
}

/** Where reading goes on behind a broken record. */
function afterRot(bytes: Buffer, offset: number): number | undefined {
  const end = endOf(bytes, offset);
  if (end !== undefined && (end === bytes.length || frameAt(bytes, end) !== undefined)) return end;
  const before = frameBytes + headLengthBytes;
  for (let at = bytes.indexOf(headStart, offset + before + 1); at !== -1; at = bytes.indexOf(headStart, at + 1))
    if (frameAt(bytes, at - before)?.record !== undefined) return at - before;
  return undefined;
}

function readBody(body: Buffer): SpoolRecord | undefined {
  const messageAt = headLengthBytes + body.readUInt32LE(0);
  if (messageAt > body.length) return undefined;
  const text = body.toString('utf8', headLengthBytes, messageAt);
  try {
    const head = recordHead.safeParse(JSON.parse(text));
    return head.success ? { ...head.data, message: body.subarray(messageAt) } : undefined;
  } catch {
    // The checksum held, so this was written so: it is no record of ours.
    return undefined;
  }
}
