export { bucketNames, buckets, leaseEveryMs, leaseTtlMs, type BucketName } from './buckets.js';
export { kvErrors } from './errors.js';
export { jsonCodec } from './json-codec.js';
export { keyGrant, type KeyGrant } from './key-grant.js';
export { kvBucket, type KvBucket, type KvChange, type KvCodec, type KvEntry, type KvKeyEntry } from './kv-bucket.js';
export { leaseAddresses } from './lease-addresses.js';
export {
  holdLease,
  leaseBucket,
  watchLeases,
  type HoldLeaseOptions,
  type LeaseHold,
  type LeaseView,
  type WatchLeasesOptions,
} from './leases.js';
export { singleton, type Singleton, type SingletonOptions } from './singleton.js';
