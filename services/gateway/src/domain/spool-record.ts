// How is one fact written to the spool, and read back after a crash?
//
// In: a fact, or the bytes of a spool file. Out: a framed record (length, CRC-32, JSON head, message bytes), or the
// records up to the first that is torn. A write that was cut by a crash can only be the last one. Pure.
import { crc32 } from 'node:zlib';
import { z } from 'zod';

/** Facts that the gateway may have to keep until the broker is back. */
const spooledFacts = ['turnOpened', 'turnCompleted', 'sessionEnded'] as const;
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
  /** Bytes at the end that form no whole record. */
  readonly tornBytes: number;
}

export function decodeRecords(bytes: Buffer): DecodedSpool {
  const records: SpoolRecord[] = [];
  let offset = 0;
  for (;;) {
    const start = offset + frameBytes;
    if (start + headLengthBytes > bytes.length) break;
    const length = bytes.readUInt32LE(offset);
    if (length < headLengthBytes || start + length > bytes.length) break;
    const body = bytes.subarray(start, start + length);
    const record = crc32(body) === bytes.readUInt32LE(offset + 4) ? readBody(body) : undefined;
    if (record === undefined) break;
    records.push(record);
    offset = start + length;
  }
  return { records, tornBytes: bytes.length - offset };
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
