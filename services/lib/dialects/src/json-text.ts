// A JSON value that is written already: what is large is written once, and never read again on the way to an engine.
import type { RawObject } from './engine-client.js';

/** A field of a request's own, never of what lies within one. */
export class JsonText {
  constructor(readonly bytes: Uint8Array) {}
}

/** The object as JSON, in pieces: fields that are written already go as they are. */
export function jsonPieces(object: RawObject): Uint8Array[] {
  const plain: RawObject = {};
  const pieces: Uint8Array[] = [];
  for (const name of Object.keys(object)) {
    const value = object[name];
    if (value instanceof JsonText) pieces.push(Buffer.from(`,${JSON.stringify(name)}:`), value.bytes);
    else plain[name] = value;
  }
  const head = JSON.stringify(plain);
  if (pieces.length === 0) return [Buffer.from(head)];
  // The comma belongs to a field before it.
  if (head === '{}') pieces[0] = pieces[0]?.subarray(1) ?? new Uint8Array();
  return [Buffer.from(head.slice(0, -1)), ...pieces, Buffer.from('}')];
}

/** Handed to a connection in under 1 ms; between two of these, others are served. */
const sliceBytes = 1024 * 1024;

export function* slicesOf(pieces: readonly Uint8Array[]): Generator<Uint8Array> {
  for (const piece of pieces)
    for (let at = 0; at < piece.byteLength; at += sliceBytes) yield piece.subarray(at, at + sliceBytes);
}
