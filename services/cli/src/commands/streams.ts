// `streams ensure`: streams and buckets as the installation wants them. Made by the broker's admin user before services
// start, and again after every upgrade; what is as it should be is not touched.
import { adminUser, dropStrayPieces, ensureStreams, readConfig, systemClock, type StreamOptions } from '@backtalk/kit';
import { streamSettings } from '../config.js';
import { withBrokerAlone } from '../connection.js';
import type { CommandContext } from '../shell.js';
import { cliErrors } from '../errors.js';

export async function ensureAll({ connection, output, signal }: CommandContext, waitSeconds: number): Promise<void> {
  if (connection.natsUser !== adminUser) throw cliErrors.adminNeeded({ user: connection.natsUser });
  const options = { ...streamOptions(), withinMs: waitSeconds * 1_000, signal };
  if (waitSeconds > 0) output.line(`It waits for the broker, up to ${String(waitSeconds)} s.`);
  const { streams, strays } = await withBrokerAlone(
    connection,
    async (broker) => ({
      streams: await ensureStreams(broker, options),
      strays: await dropStrayPieces(broker, systemClock.now()),
    }),
    { connectTimeoutMs: Math.max(3_000, options.withinMs), signal },
  );
  output.value({ replicas: options.replicas, streams, strays });
  output.table(
    ['stream', 'done', 'copies'],
    streams.map(({ stream, done, replicas: copies }) => [stream, done, String(copies)]),
  );
  if (strays > 0) output.line(`Pieces of ${String(strays)} blobs that were never finished are gone.`);
}

/** As the environment bounds them. */
export function streamOptions(): StreamOptions & { readonly replicas: number } {
  const { profile, replicas, blobsBytesMax, ...bounds } = readConfig(streamSettings);
  if (profile === 'production' && replicas === '1') throw cliErrors.copiesNeeded();
  return { ...bounds, replicas: Number(replicas), ...(blobsBytesMax === 0 ? {} : { blobsBytesMax }) };
}
