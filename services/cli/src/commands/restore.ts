// `restore`: an installation that has never run goes on from a copy. The broker's admin user puts blobs and streams back
// before services start; what is rebuilt from the log is made empty.
import { resolve } from 'node:path';
import { adminUser, blobStream, ensureStreams, openBlobStore, readManifest, restoreBackup } from '@backtalk/kit';
import { withBrokerAlone } from '../connection.js';
import type { CommandContext } from '../shell.js';
import { cliErrors } from '../errors.js';
import { streamOptions } from './streams.js';

export async function restore({ connection, output }: CommandContext, from: string): Promise<void> {
  if (connection.natsUser !== adminUser) throw cliErrors.adminNeeded({ user: connection.natsUser });
  const options = streamOptions();
  const folder = resolve(from);
  const { streams: planned } = readManifest(folder);
  const progress = output.progress('restoring', planned.length);
  const manifest = await withBrokerAlone(connection, async (broker) => {
    // Where blobs are kept in the broker, their stream is none of those that were copied.
    await ensureStreams(broker, { ...options, only: [blobStream] });
    const blobs = await openBlobStore(connection.blobs, broker);
    const restored = await restoreBackup({
      broker,
      blobs,
      folder,
      bounds: options,
      onProgress: (what, done) => {
        if (what !== 'blobs') progress.update(done, what);
      },
    });
    await ensureStreams(broker, options);
    return restored;
  }).finally(() => {
    progress.stop();
  });
  const streams = manifest.streams.map(({ stream, messages, lastSequence }) => ({ stream, messages, lastSequence }));
  output.value({ takenAt: manifest.takenAt, streams, blobs: manifest.blobs });
  output.table(
    ['stream', 'messages', 'last sequence'],
    streams.map(({ stream, messages, lastSequence }) => [stream, messages, lastSequence].map(String)),
  );
  output.line(
    `${String(manifest.blobs)} blobs, as of ${manifest.takenAt}. Start the services with the same hash secret.`,
  );
}
