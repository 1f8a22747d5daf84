// Bounds JSON before it is parsed. In: its bytes, in pieces as they come. Out: the bound that they break, if any: a
// parser makes an object of each `{}`, and 16 MiB of them are 380 MB of memory. It checks no grammar: of bytes that are
// no JSON it may say anything, because the parser stops where they end to be.

export interface JsonBounds {
  readonly bytesMax: number;
  /** Objects, lists, and the commas between what they hold, all outside of strings. */
  readonly membersMax: number;
  readonly depthMax: number;
}

/** The first bound that was broken, by its name. */
export type JsonExcess = 'bytes' | 'members' | 'depth';

/** A string longer than this is passed over by a search for its end: a call costs as much as so many bytes. */
const shortStringBytes = 48;
const quote = 0x22;
const backslash = 0x5c;

export class JsonScan {
  private bytes = 0;
  private members = 0;
  private depth = 0;
  private inString = false;
  /** The last byte of a piece was a backslash that takes the next byte's meaning away. */
  private escaped = false;
  private excess: JsonExcess | undefined;

  constructor(private readonly bounds: JsonBounds) {}

  /** Of the pieces so far, up to where a bound was broken. */
  get membersSeen(): number {
    return this.members;
  }

  /** The bound that the pieces so far break; after one that did, no other is looked at. */
  add(piece: Buffer): JsonExcess | undefined {
    if (this.excess !== undefined) return this.excess;
    this.bytes += piece.length;
    this.excess = this.bytes > this.bounds.bytesMax ? 'bytes' : this.scan(piece);
    return this.excess;
  }

  private scan(piece: Buffer): JsonExcess | undefined {
    const { membersMax, depthMax } = this.bounds;
    for (let at = this.inString ? this.endOfString(piece, 0) : 0; at < piece.length; at += 1) {
      const byte = piece[at];
      if (byte === quote) {
        this.inString = true;
        at = this.endOfString(piece, at + 1) - 1;
      } else if (byte === 0x7b || byte === 0x5b) {
        this.members += 1;
        this.depth += 1;
        if (this.depth > depthMax) return 'depth';
        if (this.members > membersMax) return 'members';
      } else if (byte === 0x2c) {
        this.members += 1;
        if (this.members > membersMax) return 'members';
      } else if (byte === 0x7d || byte === 0x5d) this.depth -= 1;
    }
    return undefined;
  }

  /** Where the string that has begun is over, or the end of the piece. */
  private endOfString(piece: Buffer, from: number): number {
    let at = this.escaped ? from + 1 : from;
    if (piece.length > from) this.escaped = false;
    for (let lookFrom = at + shortStringBytes; at < piece.length; at += 1) {
      if (at >= lookFrom) {
        at = this.quoteOrEnd(piece, at);
        lookFrom = at + shortStringBytes;
        if (at >= piece.length) return piece.length;
      }
      const byte = piece[at];
      if (byte === backslash) at += 1;
      else if (byte === quote) {
        this.inString = false;
        return at + 1;
      }
    }
    // The last byte was a backslash, and what it stands before is in the next piece.
    if (at > piece.length) this.escaped = true;
    return piece.length;
  }

  /** The next quotation mark that ends a string, or the byte after one that does not, or the end of the piece. */
  private quoteOrEnd(piece: Buffer, from: number): number {
    const found = piece.indexOf(quote, from);
    const at = found === -1 ? piece.length : found;
    let before = at;
    while (before > from && piece[before - 1] === backslash) before -= 1;
    const isEscaped = (at - before) % 2 === 1;
    if (isEscaped && found === -1) this.escaped = true;
    return isEscaped ? at + 1 : at;
  }
}

/** The bound that JSON breaks which is there as a whole. */
export function jsonExcess(json: Buffer, bounds: JsonBounds): JsonExcess | undefined {
  return new JsonScan(bounds).add(json);
}
