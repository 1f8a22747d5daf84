// What is wrong with the broker, as far as a service's own user can see it: its version, and how many copies its streams
// have. In: a connection. Out: sentences that say what to do; none is good.
import { z } from 'zod';
import { type Broker, isOlder } from '../broker/connect.js';
import { brokerError } from '../broker/translate.js';
import type { Logger } from '../telemetry/logger.js';
import { blobStream, bucketNames, buckets, bucketStream } from '../topology/buckets.js';
import { catalogue, factNames, mayRead } from '../topology/catalogue.js';
import { brokerServices } from '../topology/users.js';
import { askMonitor } from './broker-monitor.js';

const copiesMin = 3;

export async function brokerProblems(broker: Broker, usesBlobBucket: boolean, oldest: string): Promise<string[]> {
  const version = broker.nc.info?.version ?? '0';
  const old = isOlder(version, oldest) ? [`nats-server ${version} is too old, run ${oldest} or later`] : [];
  // Those that this user may ask about; the admin user may ask about all.
  const service = brokerServices.find((name) => name === broker.user);
  const facts = factNames.filter((name) => service === undefined || mayRead(service, name));
  const kept = bucketNames.filter((name) => service === undefined || buckets[name].readBy.includes(service));
  const streams = [
    ...new Set(facts.map((name) => catalogue[name].stream)),
    ...kept.map(bucketStream),
    ...(usesBlobBucket ? [blobStream] : []),
  ];
  const copies = await Promise.all(
    streams.map(async (stream) => {
      try {
        return { stream, count: (await broker.jsm.streams.info(stream)).config.num_replicas };
      } catch (error) {
        throw brokerError(error, { doing: `look at stream ${stream}`, stream });
      }
    }),
  );
  const thin = copies.filter(({ count }) => count < copiesMin).map(({ stream }) => stream);
  if (thin.length === 0) return old;
  const advice = 'run "npx backtalk streams ensure" with BACKTALK_STREAM_REPLICAS=3 on a broker of three servers';
  return [...old, `${thin.join(', ')} ${thin.length === 1 ? 'has' : 'have'} fewer than ${copiesMin} copies, ${advice}`];
}

const answer = z.object({
  server_name: z.string().default('?'),
  jetstream: z.object({
    config: z.object({ sync_always: z.boolean().default(false) }).default({ sync_always: false }),
  }),
});

export async function syncProblems(monitorUrls: string, logger: Logger): Promise<string[]> {
  const urls = monitorUrls.split(',').filter((url) => url.trim() !== '');
  if (urls.length === 0) logger.warn('broker_sync_not_checked', { variable: 'BACKTALK_NATS_MONITOR_URL' });
  const problems = urls.map(async (url) => {
    const { server_name: name, jetstream } = answer.parse(await askMonitor(url, 'varz'));
    if (jetstream.config.sync_always) return [];
    return [`nats-server ${name} acknowledges before it has written to disk, set jetstream sync_interval: always`];
  });
  return (await Promise.all(problems)).flat();
}
