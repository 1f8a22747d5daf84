// The one table of key-value buckets: caches and leases that are rebuilt from facts when they are lost.
// Who may read and write which keys derives from it.
import { brokerServices, type BrokerService } from '../broker/users.js';

export type BucketName = 'leases' | 'routes' | 'load' | 'keys' | 'settings';

export interface BucketDefinition {
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
};

export const bucketNames: readonly BucketName[] = ['leases', 'routes', 'load', 'keys', 'settings'];

/** Lease time to live, and how often it is renewed. */
export const leaseTtlMs = 12_000;
export const leaseEveryMs = 3_000;

export function bucketStream(bucket: BucketName): string {
  return `KV_${bucket}`;
}

export function bucketSubject(bucket: BucketName, key: string): string {
  return `$KV.${bucket}.${key}`;
}
