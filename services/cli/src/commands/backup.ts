// `backup`: the installation as a folder, taken while it runs. Streams and consumers, blobs, and on one machine the keys and
// secrets, without which a copy would recognise no user.
import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { adminUser, backUp, keptFiles, keptStreams, shellQuoted } from '@backtalk/kit';
import { z } from 'zod';
import { withBroker, type Connection } from '../connection.js';
import type { CommandContext } from '../shell.js';

/** Of a start that names none. */
const usualPolicy = 'backtalk';
const secrets = z.object({ passwords: z.object({ admin: z.string() }) });

export async function backup({ connection, output }: CommandContext, to: string): Promise<void> {
  const folder = resolve(to);
  const files = keptFiles
    .map((name) => ({ name, path: join(connection.data ?? '', name) }))
    .filter(({ path }) => existsSync(path));
  const progress = output.progress('copying', keptStreams.length);
  // The broker's snapshots are its administrator's; where no folder is known, the environment names that user.
  const secretsFile = join(connection.data ?? '', 'secrets.json');
  let admin = connection;
  if (connection.data !== undefined && existsSync(secretsFile)) {
    const { passwords } = secrets.parse(JSON.parse(readFileSync(secretsFile, 'utf8')));
    admin = { ...connection, natsUser: adminUser, natsPassword: passwords.admin };
  }
  const manifest = await withBroker(admin, (broker, blobs) =>
    backUp({
      broker,
      blobs,
      folder,
      files,
      served: servedBy(connection),
      onProgress: (what, done) => {
        if (what !== 'blobs') progress.update(done, what);
      },
    }),
  ).finally(() => {
    progress.stop();
  });
  output.value({ folder, ...manifest });
  output.table(
    ['stream', 'messages', 'last sequence', 'bytes'],
    manifest.streams.map(({ stream, messages, lastSequence, bytes }) =>
      [stream, messages, lastSequence, bytes].map(String),
    ),
  );
  output.line(`${String(manifest.blobs)} blobs; everything is in ${folder}.`);
  const { corruptBlobs: corrupt } = manifest;
  if (corrupt.length > 0)
    output.line(`Not copied, since their bytes are not those that were stored: blobs ${corrupt.join(', ')}.`);
  if (files.length > 0) output.line('It holds passwords and keys: keep it where only you can read it.');
  output.line(`Go on from it: npm start -- --data NEW --restore ${shellQuoted(folder)}${flagsOf(connection)}`);
}

/** A cluster does not say it. */
function servedBy({ data, baseModel, policies, quantization = 'none' }: Connection) {
  return data === undefined ? undefined : { baseModel, policies, quantization };
}

/** What a start from the copy has to be told. */
function flagsOf({ model, policies, quantization = 'none' }: Connection): string {
  const names = policies.join(',');
  return [
    model === undefined ? '' : ` --model ${shellQuoted(model)}`,
    names === usualPolicy ? '' : ` --policies ${names}`,
    quantization === 'none' ? '' : ` --quantization ${quantization}`,
  ].join('');
}
