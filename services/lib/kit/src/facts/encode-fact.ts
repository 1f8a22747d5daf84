// A fact's bytes. In: its name and message. Out: protobuf. All facts are written with one writer, because a new one grows
// from nothing and asks for memory at every step.
import { catalogue, type FactMessage, type FactName, type FactWriter } from '../topology/catalogue.js';

/** A writer that was made larger than this by one fact is not kept for the next. */
const keptBytesMax = 1024 * 1024;

let idle: FactWriter | undefined;

export function encodeFact<N extends FactName>(name: N, message: FactMessage<N>): Uint8Array {
  const writer = idle;
  // One that fails half-way is left behind with what it wrote.
  idle = undefined;
  const used = catalogue[name].codec.encode(message, writer);
  const bytes = used.finish();
  if (bytes.byteLength <= keptBytesMax) idle = used;
  return bytes;
}
