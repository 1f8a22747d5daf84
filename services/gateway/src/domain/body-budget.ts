// How many bytes of requests, and of answers, are in flight?
//
// In: bodies that begin, grow and are done with. Out: room for them, or a refusal. A request's body counts from its declared
// length until its request is answered, because what is made of it lives as long; an answer in one piece until its client has
// it; of a stream, what is captured of it, and what its client or the gateway itself has not read yet. No key takes more than its share, nor do all keys of
// a tenant together. No I/O.
import type { BacktalkError } from '@backtalk/kit';
import { gatewayErrors } from '../errors.js';
import { keylessId } from './caller.js';

/** Room for one body: a request's, or an answer's. */
export interface BodyRoom {
  /** Takes room for so many bytes more. Throws where there is none. */
  grow(bytes: number): void;
  /** As `grow`, but false where there is none. */
  mayGrow(bytes: number): boolean;
  /** So many bytes of it are kept no longer. */
  shrink(bytes: number): void;
  /** Nothing of it is kept any more: whatever comes late counts no more. */
  leave(): void;
}

/** Bodies beyond this are large: they are read beside the event loop, and leave a part of the room to ordinary ones. */
export const largeBodyBytes = 1024 * 1024;
const largeShare = 3 / 4;
const keyShare = 1 / 2;
/** Of what bodies as large may take. */
const tenantShare = 3 / 4;
const retryAfterSeconds = 1;

export class BodyBudget {
  private readonly byKey = new Map<string, number>();
  private readonly byTenant = new Map<string, number>();
  private bytes = 0;

  constructor(private readonly bytesMax: number) {}

  /** What one key may have in flight, and so the largest body that there can be. */
  get keyBytesMax(): number {
    return Math.floor(this.bytesMax * keyShare);
  }

  room(keyId: string, tenant: string): BodyRoom {
    const owner = { keyId, tenant };
    let held = 0;
    let isLeft = false;
    const change = (bytes: number): void => {
      if (isLeft) return;
      held += bytes;
      this.count(owner, bytes);
    };
    return {
      grow: (bytes) => {
        const refusal = this.refusal(owner, held + bytes, bytes);
        if (refusal !== undefined) throw refusal;
        change(bytes);
      },
      mayGrow: (bytes) => {
        if (this.refusal(owner, held + bytes, bytes) !== undefined) return false;
        change(bytes);
        return true;
      },
      shrink: (bytes) => change(-bytes),
      leave: () => {
        change(-held);
        isLeft = true;
      },
    };
  }

  private refusal({ keyId, tenant }: Owner, bodyBytes: number, bytes: number): BacktalkError | undefined {
    const what = 'bytes of requests and answers at once';
    if ((this.byKey.get(keyId) ?? 0) + bytes > this.keyBytesMax)
      return gatewayErrors.rateLimited({ what: `${this.keyBytesMax} ${what}`, retryAfterSeconds });
    const bytesMax = bodyBytes > largeBodyBytes ? this.bytesMax * largeShare : this.bytesMax;
    const tenantMax = Math.floor(bytesMax * tenantShare);
    if (keyId !== keylessId && (this.byTenant.get(tenant) ?? 0) + bytes > tenantMax)
      return gatewayErrors.rateLimited({
        what: `${tenantMax} ${what} with its tenant's other keys`,
        retryAfterSeconds,
      });
    return this.bytes + bytes > bytesMax ? gatewayErrors.overloaded({ retryAfterSeconds }) : undefined;
  }

  private count({ keyId, tenant }: Owner, bytes: number): void {
    this.bytes += bytes;
    add(this.byKey, keyId, bytes);
    add(this.byTenant, tenant, bytes);
  }
}

interface Owner {
  readonly keyId: string;
  readonly tenant: string;
}

/** Names at zero are forgotten, so that old ones do not pile up. */
function add(counts: Map<string, number>, name: string, bytes: number): void {
  const left = (counts.get(name) ?? 0) + bytes;
  if (left > 0) counts.set(name, left);
  else counts.delete(name);
}
