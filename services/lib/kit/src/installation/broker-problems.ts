// What is wrong with the broker, as far as a service's own user can see it: its version, and how many copies its streams
// have. In: a connection. Out: sentences that say what to do; none is good.
import type { Broker } from '../broker/connect.js';
import { brokerError } from '../broker/translate.js';
import { isOlder } from '../broker/version-order.js';
import { blobStream, bucketNames, buckets, bucketStream } from '../topology/buckets.js';
import { catalogue, factNames, mayRead } from '../topology/catalogue.js';
import { brokerServices } from '../topology/users.js';

const copiesMin = 3;

export async function brokerProblems(broker: Broker, usesBlobBucket: boolean, oldest: string): Promise<string[]> {
  const version = broker.nc.info?.version ?? '0';
  const old = isOlder(version, oldest) ? [`nats-server ${version} is too old, run ${oldest} or later`] : [];
  const streams = streamsOf(broker.user, usesBlobBucket);
  const copies = await Promise.all(streams.map(async (stream) => ({ stream, count: await copiesOf(broker, stream) })));
  const thin = copies.filter(({ count }) => count < copiesMin).map(({ stream }) => stream);
  if (thin.length === 0) return old;
  const advice = 'run "npx backtalk streams ensure" with BACKTALK_STREAM_REPLICAS=3 on a broker of three servers';
  return [...old, `${thin.join(', ')} ${thin.length === 1 ? 'has' : 'have'} fewer than ${copiesMin} copies, ${advice}`];
}

/** Those that this user may ask about; the admin user may ask about all. */
function streamsOf(user: string, usesBlobBucket: boolean): string[] {
  const service = brokerServices.find((name) => name === user);
  const facts = factNames.filter((name) => service === undefined || mayRead(service, name));
  const kept = bucketNames.filter((name) => service === undefined || buckets[name].readBy.includes(service));
  return [
    ...new Set(facts.map((name) => catalogue[name].stream)),
    ...kept.map(bucketStream),
    ...(usesBlobBucket ? [blobStream] : []),
  ];
}

async function copiesOf(broker: Broker, stream: string): Promise<number> {
  try {
    return (await broker.jsm.streams.info(stream)).config.num_replicas;
  } catch (error) {
    throw brokerError(error, { doing: `look at stream ${stream}`, stream });
  }
}
