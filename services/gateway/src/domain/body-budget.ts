// How many bytes of requests are in flight?
//
// In: bodies that begin, grow and are done with. Out: room for them, or a refusal. A body counts from its declared
// length until its request is answered, because what is made of it lives as long. No I/O.
import { gatewayErrors } from '../errors.js';

/** Room for one request's body. */
export interface BodyRoom {
  /** Takes room for so many bytes more. Throws where there is none. */
  grow(bytes: number): void;
  /** The request is answered. */
  leave(): void;
}

/** Bodies beyond this are large: they are read beside the event loop, and leave a part of the room to ordinary ones. */
export const largeBodyBytes = 1024 * 1024;
const largeShare = 3 / 4;
const keyShare = 1 / 2;
const retryAfterSeconds = 1;

export class BodyBudget {
  private readonly byKey = new Map<string, number>();
  private bytes = 0;

  constructor(private readonly bytesMax: number) {}

  /** What one key may have in flight, and so the largest body that there can be. */
  get keyBytesMax(): number {
    return Math.floor(this.bytesMax * keyShare);
  }

  room(keyId: string): BodyRoom {
    let held = 0;
    return {
      grow: (bytes) => {
        this.check(keyId, held + bytes, bytes);
        held += bytes;
        this.count(keyId, bytes);
      },
      leave: () => {
        this.count(keyId, -held);
        held = 0;
      },
    };
  }

  private check(keyId: string, bodyBytes: number, bytes: number): void {
    if ((this.byKey.get(keyId) ?? 0) + bytes > this.keyBytesMax)
      throw gatewayErrors.rateLimited({ what: `${this.keyBytesMax} bytes of requests at once`, retryAfterSeconds });
    const bytesMax = bodyBytes > largeBodyBytes ? this.bytesMax * largeShare : this.bytesMax;
    if (this.bytes + bytes > bytesMax) throw gatewayErrors.overloaded({ retryAfterSeconds });
  }

  private count(keyId: string, bytes: number): void {
    this.bytes += bytes;
    const left = (this.byKey.get(keyId) ?? 0) + bytes;
    if (left > 0) this.byKey.set(keyId, left);
    else this.byKey.delete(keyId);
  }
}
