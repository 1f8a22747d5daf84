// Facts that may have ended the process that handled them. A fact that is held is delivered again at every start, so its deliveries
// alone say little: from a few on it is handled by itself, and that is counted in bucket `tries` before, and taken back after. What is
// counted at a start is what the process did not survive.
import { z } from 'zod';
import type { Broker } from '../broker/connect.js';
import type { MessagePlace } from '../broker/pull.js';
import { jsonCodec, kvBucket, type KvBucket } from '../kv/kv-bucket.js';
import { asBacktalkError } from '../errors/backtalk-error.js';
import { Mutex } from '../time/clock.js';
import { factErrors } from './errors.js';

/** By stream sequence: tries that have not ended, as far as is known. */
const triedSchema = z.record(z.string(), z.number().int().min(1));
type Tried = z.infer<typeof triedSchema>;

/** A fact that was delivered no more often is handled beside others. */
const plainDeliveries = 3;
const triesMax = 5;
/** One is handled at a time, so what is left of others has ended the process: there are few of them. */
const rememberedMax = 100;

export class Suspects {
  private readonly bucket: KvBucket<Tried>;
  private readonly mutex = new Mutex();

  /** @param key begins with the name of the broker's user, which writes under it only */
  constructor(
    private readonly broker: Broker,
    private readonly key: string,
  ) {
    this.bucket = kvBucket<Tried>(broker, 'tries', jsonCodec(triedSchema));
  }

  /** Runs a fact's handling. Throws `delivered_too_often` in its place where it has ended the process too often. */
  async run(place: MessagePlace, handle: () => Promise<void>): Promise<void> {
    if (place.deliveries <= plainDeliveries) return handle();
    await this.mutex.run(async () => {
      const sequence = String(place.sequence);
      const { [sequence]: tries = 0, ...others } = (await this.bucket.get(this.key))?.value ?? {};
      if (tries >= triesMax) {
        await this.bucket.put(this.key, others);
        throw factErrors.poisonous({ deliveries: place.deliveries });
      }
      const remembered = Object.fromEntries(Object.entries(others).slice(-rememberedMax));
      await this.bucket.put(this.key, { ...remembered, [sequence]: tries + 1 });
      try {
        await handle();
      } finally {
        // Left behind, it is one of the tries that a fact has.
        await this.bucket.put(this.key, remembered).catch((error: unknown) => {
          this.broker.logger.warn('try_not_taken_back', { error: asBacktalkError(error) });
        });
      }
    });
  }
}
