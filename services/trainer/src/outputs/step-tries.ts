// How often the step of a policy's open batch was tried, counted before each try, so that a try that ends the process counts as well.
// A count that is lost costs further tries and nothing else.
import { jsonCodec, kvBucket, type Broker, type KvBucket } from '@backtalk/kit';
import { z } from 'zod';

const triedSchema = z.object({
  batch: z.number().int().min(0),
  tries: z.number().int().min(0),
  /** Of the newest failure; empty while a try runs, and after one that ended the process. */
  code: z.string(),
});

export type Tried = Readonly<z.infer<typeof triedSchema>>;

export class StepTries {
  private readonly bucket: KvBucket<Tried>;

  constructor(broker: Broker) {
    this.bucket = kvBucket<Tried>(broker, 'tries', jsonCodec(triedSchema));
  }

  async of(policy: string, batch: number): Promise<Tried> {
    const tried = (await this.bucket.get(keyOf(policy)))?.value;
    return tried?.batch === batch ? tried : { batch, tries: 0, code: '' };
  }

  /** Only the leader writes, and it reads before. */
  async keep(policy: string, tried: Tried): Promise<void> {
    await this.bucket.put(keyOf(policy), tried);
  }
}

function keyOf(policy: string): string {
  return `trainer.batch.${policy}`;
}
