// What the broker keeps beside the log: key-value buckets, caches and leases that are rebuilt from facts when they are
// lost, keys, settings and refusals, which are in the backup, and one bucket of blobs. Who may read and write what derives from these tables.
import { type BrokerService, brokerServices } from './users.js';

export type BucketName = 'leases' | 'routes' | 'load' | 'keys' | 'settings' | 'tries' | 'refusals' | 'payloads';

interface BucketDefinition {
  /** True when entries vanish unless they are renewed; the time to live is an option of the installation. */
  readonly expires: boolean;
  readonly readBy: readonly BrokerService[];
  /** Filters of the keys that a service may write. */
  readonly writes: (service: BrokerService) => readonly string[];
}

const everyKeyFor =
  (...writers: readonly BrokerService[]) =>
  (service: BrokerService): readonly string[] =>
    writers.includes(service) ? ['>'] : [];

/** Facts above the broker's bound are put by those who publish them, weights by the trainer. */
export const blobWriters: readonly BrokerService[] = ['gateway', 'collector', 'judge', 'trainer', 'cli'];

export const buckets: Readonly<Record<BucketName, BucketDefinition>> = {
  // A service renews leases under its own name, and the one that makes it the only leader.
  leases: {
    expires: true,
    readBy: brokerServices,
    writes: (service) => [
      `${service}.*`,
      `singleton.${service}`,
      ...(service === 'trainer' ? ['training-worker.*'] : []),
    ],
  },
  routes: { expires: false, readBy: brokerServices, writes: everyKeyFor('publisher') },
  load: { expires: false, readBy: brokerServices, writes: everyKeyFor('publisher') },
  keys: { expires: false, readBy: ['gateway', 'cli'], writes: everyKeyFor('cli') },
  settings: { expires: false, readBy: brokerServices, writes: everyKeyFor('cli') },
  // How often a service has tried what may end it, counted before each try. Losing a count costs further tries.
  tries: { expires: false, readBy: brokerServices, writes: (service) => [`${service}.>`] },
  // Who has said no, for longer than the log holds their turns.
  refusals: { expires: false, readBy: ['collector', 'judge', 'cli'], writes: everyKeyFor('collector') },
  // Which blobs are payloads of facts, by digest: written before the blob, so that the trainer can drop it when the fact has gone.
  payloads: {
    expires: false,
    // Writers add up what lies there: it counts against the bound of the log.
    readBy: blobWriters,
    writes: (service) => (blobWriters.includes(service) ? ['>'] : []),
  },
};

export const bucketNames = Object.keys(buckets) as readonly BucketName[];

/** Lease time to live, and how often it is renewed. */
export const leaseTtlMs = 12_000;
export const leaseEveryMs = 3_000;

export function bucketStream(bucket: BucketName): string {
  return `KV_${bucket}`;
}

export function bucketSubject(bucket: BucketName, key: string): string {
  return `$KV.${bucket}.${key}`;
}

/** The bucket of the broker's object store that holds blobs. */
export const blobBucket = 'blobs';
export const blobStream = `OBJ_${blobBucket}`;
export const blobPieces = `$O.${blobBucket}.C.>`;
export const blobDescriptions = `$O.${blobBucket}.M.>`;

/** The trainer sweeps old weights. */
export const blobDeleters: readonly BrokerService[] = ['trainer', 'cli'];
