// How much of a day's log has each tenant, and each key, used?
//
// In: the bytes of what is stored for them. Out: whose share is full, from memory, so that no request waits for it.
// Gateways add theirs up in Valkey once a second; where that is away or was emptied, each goes on from what it knows. A
// share may be passed by what all gateways store within that second, and by what is in flight.
import type { Clock } from '@backtalk/kit';
import { keylessId, type Caller } from '../domain/caller.js';
import type { Valkey } from './valkey.js';

export type ShareOwner = 'key' | 'tenant';
type Sharing = Pick<Caller, 'tenant' | 'keyId' | 'limits'>;

interface Use {
  /** Of all gateways, when they were last added up. */
  known: number;
  /** Of this one since then. */
  pending: number;
  /** Asked for or added to since then. */
  isActive: boolean;
}

const dayMs = 24 * 60 * 60 * 1000;
const addUpEveryMs = 1_000;
const keyShare = 2;

export class CaptureShare {
  private readonly uses = new Map<string, Use>();
  private day = 0;
  private cancel: (() => void) | undefined;

  constructor(
    private readonly valkey: Valkey,
    private readonly clock: Clock,
    private readonly tenantBytesMax: number,
  ) {}

  fullOf({ tenant, keyId, limits }: Sharing): ShareOwner | undefined {
    // One key without a number of its own leaves half of its tenant's day to others.
    const keyMax = limits.captureBytesPerDay ?? (keyId === keylessId ? Infinity : this.tenantBytesMax / keyShare);
    if (this.usedBy(`key:${keyId}`) >= keyMax) return 'key';
    return this.usedBy(`tenant:${tenant}`) >= this.tenantBytesMax ? 'tenant' : undefined;
  }

  add({ tenant, keyId }: Sharing, bytes: number): void {
    for (const name of [`key:${keyId}`, `tenant:${tenant}`]) this.useOf(name).pending += bytes;
  }

  secondsToNextDay(): number {
    return Math.ceil((dayMs - (this.clock.now() % dayMs)) / 1000);
  }

  /** What was not added up yet is, within Valkey's limit. */
  async stop(): Promise<void> {
    this.cancel?.();
    await this.addUp();
  }

  private usedBy(name: string): number {
    const { known, pending } = this.useOf(name);
    return known + pending;
  }

  private useOf(name: string): Use {
    const day = Math.floor(this.clock.now() / dayMs);
    if (day !== this.day) this.uses.clear();
    this.day = day;
    const found = this.uses.get(name);
    const use = found ?? { known: 0, pending: 0, isActive: true };
    use.isActive = true;
    if (found === undefined) this.uses.set(name, use);
    // Other gateways, or an earlier life of this one, may have stored something, too.
    this.addUpLater();
    return use;
  }

  private addUpLater(): void {
    this.cancel ??= this.clock.timer(addUpEveryMs, () => {
      this.cancel = undefined;
      // It never fails: a Valkey that does not answer is counted as skipped.
      void this.addUp();
    });
  }

  private async addUp(): Promise<void> {
    const sent = [...this.uses].filter(([, use]) => use.isActive);
    if (sent.length === 0) return;
    const { day } = this;
    const bytes = sent.map(([, use]) => use.pending);
    for (const [, use] of sent) use.isActive = false;
    const sums = await this.valkey.attempt('share', (client) =>
      Promise.all(
        sent.map(async ([name], index) => {
          const key = `backtalk:gateway:captured:${name}:${day}`;
          const [sum] = await Promise.all([client.incrby(key, bytes[index] ?? 0), client.pexpire(key, 2 * dayMs)]);
          return sum;
        }),
      ),
    );
    // Without an answer they count as sent: sent again, they might count twice.
    for (const [index, [, use]] of sent.entries()) {
      const added = bytes[index] ?? 0;
      use.pending -= added;
      use.known = Math.max(use.known + added, sums?.[index] ?? 0);
    }
  }
}
