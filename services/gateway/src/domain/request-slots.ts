// How many requests are being answered now?
//
// In: answers that begin and end. Out: counts by key, by tenant, by engine and by weights version, and a refusal where a bound is
// reached. No tenant, with however many keys, takes all places, and no key fills an engine, or all others would wait in the engine behind its answers. It counts in memory only, so its bounds hold whatever else is down. No I/O.
import { gatewayErrors } from '../errors.js';
import { keylessId } from './caller.js';

interface SlotBounds {
  readonly requestsMax: number;
  readonly keyRequestsMax: number;
}

/** As many answers a vLLM engine gives at once unless it was started otherwise; what is beyond them waits there, in order. */
const enginePlaces = 256;
/** Of an engine, for one key. */
const keyShare = 3 / 4;
/** Of all places, for the keys of one tenant together. */
const tenantShare = 3 / 4;
const retryAfterSeconds = 1;

export class RequestSlots {
  private readonly byKey = new Counts();
  private readonly byTenant = new Counts();
  private readonly byEngine = new Counts();
  private readonly byKeyOnEngine = new Counts();
  private readonly versionCounts = new Counts();
  private readonly listeners = new Set<() => void>();
  private count = 0;

  constructor(private readonly bounds: SlotBounds) {}

  /** A request of this key begins; the returned function ends it. */
  enter(keyId: string, keyLimit: number | undefined, tenant: string): () => void {
    const { requestsMax, keyRequestsMax } = this.bounds;
    const keyMax = keyLimit ?? keyRequestsMax;
    const tenantMax = Math.ceil(requestsMax * tenantShare);
    if (this.count >= requestsMax) throw gatewayErrors.overloaded({ retryAfterSeconds });
    if (this.byKey.of(keyId) >= keyMax)
      throw gatewayErrors.rateLimited({ what: `${keyMax} requests at once`, retryAfterSeconds });
    if (keyId !== keylessId && this.byTenant.of(tenant) >= tenantMax)
      throw gatewayErrors.rateLimited({
        what: `${tenantMax} requests at once with its tenant's other keys`,
        retryAfterSeconds,
      });
    this.count += 1;
    const leaveKey = this.byKey.add(keyId);
    const leaveTenant = this.byTenant.add(tenant);
    return () => {
      leaveKey();
      leaveTenant();
      this.count -= 1;
      this.announce();
    };
  }

  /** An engine begins to answer a key with a version; the returned function ends it. */
  answer(keyId: string, engine: string, version: string): () => void {
    const leaveEngine = this.byEngine.add(engine);
    const leaveKey = this.byKeyOnEngine.add(nameOn(engine, keyId));
    const leaveVersion = this.versionCounts.add(version);
    this.announce();
    let left = false;
    return () => {
      if (left) return;
      left = true;
      leaveEngine();
      leaveKey();
      leaveVersion();
      this.announce();
    };
  }

  onEngine(engine: string): number {
    return this.byEngine.of(engine);
  }

  /** Whether the engine answers as many of the key's requests as it may at once. */
  hasShare(keyId: string, engine: string, engineRequestsMax: number): boolean {
    const shareMax = Math.ceil(Math.min(engineRequestsMax, enginePlaces) * keyShare);
    return this.byKeyOnEngine.of(nameOn(engine, keyId)) >= shareMax;
  }

  byVersion(): Record<string, number> {
    return this.versionCounts.all();
  }

  /** Calls `fn` at every change; the returned function ends that. */
  onChange(fn: () => void): () => void {
    this.listeners.add(fn);
    return () => this.listeners.delete(fn);
  }

  private announce(): void {
    for (const listener of this.listeners) listener();
  }
}

function nameOn(engine: string, keyId: string): string {
  return `${keyId} ${engine}`;
}

/** Counters by name; names at zero are forgotten, so that old ones do not pile up. */
class Counts {
  private readonly counts = new Map<string, number>();

  of(name: string): number {
    return this.counts.get(name) ?? 0;
  }

  all(): Record<string, number> {
    return Object.fromEntries(this.counts);
  }

  add(name: string): () => void {
    this.counts.set(name, this.of(name) + 1);
    return () => {
      const left = this.of(name) - 1;
      if (left > 0) this.counts.set(name, left);
      else this.counts.delete(name);
    };
  }
}
