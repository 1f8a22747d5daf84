// What each key used in the current minute, counted by all gateways together in Valkey, and by each for itself.
//
// In: a key's id and what it uses. Out: the limit that is reached, if any. Valkey's sum decides; where it does not answer
// in time, this gateway's own count does, so that a key of several gateways has its limit at each of them.
import type { Clock } from '@backtalk/kit';
import { minuteMs, reachedLimit, type Limits } from '../domain/caller.js';
import type { Valkey } from './valkey.js';

interface OwnUse {
  requests: number;
  tokens: number;
}

export class MinuteCounts {
  private readonly own = new Map<string, OwnUse>();
  private minute = 0;

  constructor(
    private readonly valkey: Valkey,
    private readonly clock: Clock,
  ) {}

  /** Counts a request, and says which limit it is beyond. */
  async reached(keyId: string, limits: Limits): Promise<string | undefined> {
    const own = this.ownUse(keyId);
    own.requests += 1;
    const reachedHere = reachedLimit(limits, own);
    // Valkey is not asked about a flood.
    if (reachedHere !== undefined) return reachedHere;
    const key = this.key(keyId);
    const use = await this.valkey.attempt('limits', async (client) => {
      const [requests, tokens] = await Promise.all([
        client.hincrby(key, 'requests', 1),
        client.hget(key, 'tokens'),
        client.pexpire(key, 2 * minuteMs),
      ]);
      return { requests, tokens: Number(tokens ?? 0) };
    });
    return use && reachedLimit(limits, use);
  }

  async addTokens(keyId: string, tokens: number): Promise<void> {
    this.ownUse(keyId).tokens += tokens;
    const key = this.key(keyId);
    await this.valkey.attempt('limits', async (client) => {
      await Promise.all([client.hincrby(key, 'tokens', tokens), client.pexpire(key, 2 * minuteMs)]);
    });
  }

  private ownUse(keyId: string): OwnUse {
    const minute = this.minuteNow();
    if (minute !== this.minute) this.own.clear();
    this.minute = minute;
    const use = this.own.get(keyId) ?? { requests: 0, tokens: 0 };
    this.own.set(keyId, use);
    return use;
  }

  private minuteNow(): number {
    return Math.floor(this.clock.now() / minuteMs);
  }

  private key(keyId: string): string {
    return `backtalk:gateway:minute:${keyId}:${this.minuteNow()}`;
  }
}
