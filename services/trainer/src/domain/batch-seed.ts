// Which seed a batch trains with.
// In: policy, batch number and the installation's own seed. Out: a whole number below 2^48. It stands in the batch's fact:
// the same batch has the same seed for ever.
import { createHash } from 'node:crypto';

export function batchSeed(policy: string, batch: number, seed: number): number {
  return createHash('sha256').update(`${policy}\u0000${batch}\u0000${seed}`).digest().readUIntBE(0, 6);
}
