// What each service may do on the broker, derived from the catalogue of facts and the table of buckets. Pure.
// A service publishes the facts it owns, reads the facts it is named for, acknowledges its own deliveries, and hears
// replies under its own inbox prefix only.
import {
  blobDeleters,
  blobDescriptions,
  blobPieces,
  blobStream,
  blobWriters,
  bucketNames,
  buckets,
  bucketStream,
  bucketSubject,
} from './buckets.js';
import { catalogue, factNames, mayRead } from './catalogue.js';
import { deadStream, replayStream } from './streams.js';
import { durableOf, subjectFilter } from './subjects.js';
import { type BrokerService, brokerServices, inboxPrefixOf } from './users.js';

interface Permissions {
  readonly publish: readonly string[];
  readonly subscribe: readonly string[];
}

/** `suffixes`: those of durable consumers that exist beside the plain one, such as the names of policies. */
export function permissionsOf(service: BrokerService, suffixes: readonly string[]): Permissions {
  const reads = factNames
    .filter((name) => mayRead(service, name))
    .flatMap((name) => {
      const { stream } = catalogue[name];
      const durables = [durableOf(service, name), ...suffixes.map((suffix) => durableOf(service, name, suffix))];
      return [
        // Temporary consumers have names of chance: their filter is what is restricted.
        ...consumePermissions(stream, subjectFilter(name)),
        `$JS.API.DIRECT.GET.${stream}.${subjectFilter(name)}`,
        ...durables.map((durable) => `$JS.ACK.${stream}.${durable}.>`),
        ...durables.map((durable) => `$JS.ACK.${replayStream}.${durable}.>`),
      ];
    });
  const publish = [
    ...factNames.filter((name) => catalogue[name].publishers.includes(service)).map((name) => subjectFilter(name)),
    ...reads,
    ...bucketPermissions(service),
    ...consumePermissions(blobStream, blobDescriptions),
    ...consumePermissions(blobStream, blobPieces),
    `$JS.API.DIRECT.GET.${blobStream}.${blobDescriptions}`,
    ...(blobWriters.includes(service) ? [blobDescriptions, blobPieces] : []),
    // The broker's permissions tell streams apart when it purges, not subjects: who may delete one blob could delete all.
    ...(blobDeleters.includes(service)
      ? [
          `$JS.API.STREAM.PURGE.${blobStream}`,
          `$JS.API.STREAM.PURGE.${bucketStream('payloads')}`,
          `$JS.API.STREAM.MSG.GET.${bucketStream('payloads')}`,
        ]
      : []),
    // Asks the stream's leader, who has every fact that was confirmed. The broker tells streams apart here, not subjects: only
    // for the one that settles turns for good, and reads nearly every fact of a turn anyway.
    ...(leaderReaders.includes(service) ? [`$JS.API.STREAM.MSG.GET.${catalogue.turnOpened.stream}`] : []),
    `backtalk.dead.${service}.>`,
    ...consumePermissions(replayStream, `backtalk.replay.${service}.>`),
    ...(service === 'cli' ? operatorPermissions : []),
  ];
  return { publish: [...new Set(publish)], subscribe: [`${inboxPrefixOf(service)}.>`] };
}

function consumePermissions(stream: string, filter: string): string[] {
  return [
    `$JS.API.CONSUMER.CREATE.${stream}.*.${filter}`,
    `$JS.API.CONSUMER.INFO.${stream}.*`,
    `$JS.API.CONSUMER.MSG.NEXT.${stream}.*`,
    `$JS.API.STREAM.INFO.${stream}`,
  ];
}

function bucketPermissions(service: BrokerService): string[] {
  return bucketNames.flatMap((bucket) => {
    const { readBy, writes } = buckets[bucket];
    const reads = readBy.includes(service)
      ? [
          ...consumePermissions(bucketStream(bucket), bucketSubject(bucket, '>')),
          `$JS.API.DIRECT.GET.${bucketStream(bucket)}.${bucketSubject(bucket, '>')}`,
        ]
      : [];
    return [...reads, ...writes(service).map((key) => bucketSubject(bucket, key))];
  });
}

const leaderReaders: readonly BrokerService[] = ['trainer'];

const operatorPermissions: readonly string[] = [
  ...consumePermissions(deadStream, 'backtalk.dead.>'),
  ...brokerServices.map((service) => `backtalk.replay.${service}.>`),
  `$JS.API.STREAM.MSG.DELETE.${deadStream}`,
  '$JS.API.STREAM.INFO.*',
  '$JS.API.CONSUMER.LIST.*',
  '$JS.API.CONSUMER.INFO.*.*',
];
