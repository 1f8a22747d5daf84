// What each service may do on the broker, derived from the catalogue of facts and the table of buckets. Pure.
// A service publishes the facts it owns, reads the facts it is named for, takes from its own durable consumers and
// acknowledges its own deliveries, and hears replies under its own inbox prefix only.
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
import { catalogue, durables, factNames, factStreams, mayRead } from './catalogue.js';
import { deadStream, replayStream } from './streams.js';
import { durableOf, subjectFilter } from './subjects.js';
import { type BrokerService, brokerServices, inboxPrefixOf } from './users.js';

interface Permissions {
  readonly publish: readonly string[];
  /** Stronger than `publish`. */
  readonly publishDenied: readonly string[];
  readonly subscribe: readonly string[];
}

/** `suffixes`: those of durable consumers that exist beside the plain one, such as the names of policies. */
export function permissionsOf(service: BrokerService, suffixes: readonly string[]): Permissions {
  const reads = factNames
    .filter((name) => mayRead(service, name))
    .flatMap((name) => readPermissions(catalogue[name].stream, subjectFilter(name)));
  const publish = [
    ...factNames.filter((name) => catalogue[name].publishers.includes(service)).map((name) => subjectFilter(name)),
    ...reads,
    ...durablesOf(suffixes)
      .filter((durable) => durable.service === service)
      .flatMap(({ stream, durable }) => durablePermissions(service, stream, durable)),
    ...bucketPermissions(service),
    ...readPermissions(blobStream, blobDescriptions),
    ...readPermissions(blobStream, blobPieces),
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
    // for those to whom an absent fact means something, and who read nearly every fact of a turn anyway.
    ...(leaderReaders.includes(service) ? [`$JS.API.STREAM.MSG.GET.${catalogue.turnOpened.stream}`] : []),
    `backtalk.dead.${service}.>`,
    `$JS.API.STREAM.INFO.${replayStream}`,
    ...(storeWatchers.includes(service) ? ['$JS.API.INFO'] : []),
    ...(service === 'cli' ? operatorPermissions : []),
  ];
  // Temporary consumers have names of chance, which no pattern of the broker tells from names of durable ones.
  const publishDenied = durablesOf(suffixes)
    .filter((durable) => durable.service !== service)
    .flatMap(({ stream, durable }) => [
      `$JS.API.CONSUMER.CREATE.${stream}.${durable}.>`,
      `$JS.API.CONSUMER.MSG.NEXT.${stream}.${durable}`,
    ]);
  return { publish: [...new Set(publish)], publishDenied, subscribe: [`${inboxPrefixOf(service)}.>`] };
}

function durablesOf(suffixes: readonly string[]) {
  return durables.flatMap(({ service, name, stream }) =>
    [undefined, ...suffixes].map((suffix) => ({ service, stream, durable: durableOf(service, name, suffix) })),
  );
}

/** Its newest message, and all of them through a temporary consumer. Of that one, the filter is what is restricted. */
function readPermissions(stream: string, filter: string): string[] {
  return [
    `$JS.API.DIRECT.GET.${stream}.${filter}`,
    `$JS.API.CONSUMER.CREATE.${stream}.*.${filter}`,
    `$JS.API.CONSUMER.MSG.NEXT.${stream}.*`,
    `$JS.API.STREAM.INFO.${stream}`,
  ];
}

/** A durable consumer of facts, and that of the same facts given back to it. */
function durablePermissions(service: BrokerService, stream: string, durable: string): string[] {
  return [
    `$JS.API.CONSUMER.INFO.${stream}.${durable}`,
    `$JS.ACK.${stream}.${durable}.>`,
    `$JS.API.CONSUMER.CREATE.${replayStream}.${durable}.backtalk.replay.${service}.${durable}`,
    `$JS.API.CONSUMER.MSG.NEXT.${replayStream}.${durable}`,
    `$JS.ACK.${replayStream}.${durable}.>`,
  ];
}

function bucketPermissions(service: BrokerService): string[] {
  return bucketNames.flatMap((bucket) => {
    const { readBy, writes } = buckets[bucket];
    const reads = readBy.includes(service) ? readPermissions(bucketStream(bucket), bucketSubject(bucket, '>')) : [];
    return [...reads, ...writes(service).map((key) => bucketSubject(bucket, key))];
  });
}

const leaderReaders: readonly BrokerService[] = ['collector', 'judge', 'trainer'];

/** How much all streams together hold, and may: figures alone. */
const storeWatchers: readonly BrokerService[] = ['collector'];

const operatorPermissions: readonly string[] = [
  ...readPermissions(deadStream, 'backtalk.dead.>'),
  ...brokerServices.map((service) => `backtalk.replay.${service}.>`),
  `$JS.API.STREAM.MSG.DELETE.${deadStream}`,
  // Old turns are trimmed, and people are forgotten.
  ...factStreams.map((stream) => `$JS.API.STREAM.MSG.DELETE.${stream}`),
  '$JS.API.STREAM.INFO.*',
  '$JS.API.CONSUMER.LIST.*',
  '$JS.API.CONSUMER.INFO.*.*',
];
