// How do a request's messages read as JSON?
//
// In: messages. Out: the JSON array that goes to the engine and into the log, written once, with the places where messages
// end in it, so that a part can be taken without reading any of it again. Pure.
import { createHash, hash } from 'node:crypto';

export interface WrittenMessages {
  /** JSON array of the messages. */
  readonly json: Uint8Array;
  /** For each message the place behind the comma, or the bracket, that follows it. */
  readonly ends: readonly number[];
  /** Of all messages, as `digestOfFirst` gives it of some. */
  readonly digest: string;
}

/** Hashed in 2 ms: others are served between two of these. */
const pieceBytes = 512 * 1024;

export function writeMessages(messages: readonly unknown[]): WrittenMessages {
  let text = '[';
  let end = 1;
  const ends: number[] = [];
  for (const message of messages) {
    const written = `${JSON.stringify(message)},`;
    text += written;
    end += Buffer.byteLength(written);
    ends.push(end);
  }
  const json = Buffer.from(messages.length === 0 ? '[]' : text);
  json[json.length - 1] = ']'.charCodeAt(0);
  return { json, ends, digest: hash('sha256', json.subarray(1, -1), 'hex') };
}

/**
 * Of so many messages as there are at most.
 * @param pause lets others go on: what is large is hashed in pieces
 */
export async function digestOfFirst(
  { json, ends, digest }: WrittenMessages,
  count: number,
  pause: () => Promise<unknown>,
): Promise<string> {
  if (count === ends.length) return digest;
  const first = json.subarray(1, (ends[count - 1] ?? 2) - 1);
  const made = createHash('sha256');
  for (let at = 0; at < first.length; at += pieceBytes) {
    if (at > 0) await pause();
    made.update(first.subarray(at, at + pieceBytes));
  }
  return made.digest('hex');
}

/** One of the messages; undefined where it is longer than that. */
export function messageAt({ json, ends }: WrittenMessages, index: number, bytesMax: number): unknown {
  const start = index === 0 ? 1 : (ends[index - 1] ?? 1);
  const end = (ends[index] ?? 0) - 1;
  if (end <= start || end - start > bytesMax) return undefined;
  return JSON.parse(Buffer.from(json.subarray(start, end)).toString('utf8'));
}

/** The array with another message in the place of one. */
export function withMessage({ json, ends }: WrittenMessages, index: number, message: unknown): Uint8Array {
  const start = index === 0 ? 1 : (ends[index - 1] ?? 1);
  const end = (ends[index] ?? 1) - 1;
  return Buffer.concat([json.subarray(0, start), Buffer.from(JSON.stringify(message)), json.subarray(end)]);
}

/** The array of the messages behind the first ones. */
export function messagesAfter({ json, ends }: WrittenMessages, count: number): Uint8Array {
  if (count === 0) return json;
  if (count === ends.length) return Buffer.from('[]');
  return Buffer.concat([Buffer.from('['), json.subarray(ends[count - 1])]);
}
