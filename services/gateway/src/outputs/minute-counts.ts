// What each key used in the current minute, counted by all gateways together in Valkey.
//
// In: a key's id and what it uses. Out: the minute's sum; undefined when Valkey does not answer in time, and then no
// limit by the minute applies.
import type { Clock } from '@backtalk/kit';
import { minuteMs, type MinuteUse } from '../domain/caller.js';
import type { Valkey } from './valkey.js';

export class MinuteCounts {
  constructor(
    private readonly valkey: Valkey,
    private readonly clock: Clock,
  ) {}

  async addRequest(keyId: string): Promise<MinuteUse | undefined> {
    const key = this.key(keyId);
    return this.valkey.attempt('limits', async (client) => {
      const [requests, tokens] = await Promise.all([
        client.hincrby(key, 'requests', 1),
        client.hget(key, 'tokens'),
        client.pexpire(key, 2 * minuteMs),
      ]);
      return { requests, tokens: Number(tokens ?? 0) };
    });
  }

  async addTokens(keyId: string, tokens: number): Promise<void> {
    const key = this.key(keyId);
    await this.valkey.attempt('limits', async (client) => {
      await Promise.all([client.hincrby(key, 'tokens', tokens), client.pexpire(key, 2 * minuteMs)]);
    });
  }

  private key(keyId: string): string {
    return `backtalk:gateway:minute:${keyId}:${Math.floor(this.clock.now() / minuteMs)}`;
  }
}
