// Pieces that a writer left when it died: named by no description. In: the admin user's connection. Out: how many writers'
// pieces went. Young ones are spared, because somebody may be about to name them.
import type { Broker } from '../broker/connect.js';
import { readStream } from '../broker/read-stream.js';
import { brokerError } from '../broker/translate.js';
import { blobDescriptions, blobPieces, blobStream } from '../topology/buckets.js';
import { description, piecesSubject } from './jetstream-blob-store.js';

const graceMs = 60 * 60 * 1000;

export async function dropStrayPieces(broker: Broker, nowMs: number): Promise<number> {
  const named = await namedPieces(broker);
  const prefix = piecesSubject('');
  const strays = (await subjectsOfPieces(broker))
    .map((subject) => subject.slice(prefix.length))
    .filter((nuid) => !named.has(nuid) && nowMs - madeAtMs(nuid) > graceMs);
  for (const nuid of strays) await broker.jsm.streams.purge(blobStream, { filter: piecesSubject(nuid) });
  return strays.length;
}

async function subjectsOfPieces(broker: Broker): Promise<string[]> {
  try {
    const { state } = await broker.jsm.streams.info(blobStream, { subjects_filter: blobPieces });
    return Object.keys(state.subjects ?? {});
  } catch (error) {
    throw brokerError(error, { doing: 'look for stray pieces', stream: blobStream });
  }
}

async function namedPieces(broker: Broker): Promise<ReadonlySet<string>> {
  const reading = {
    broker,
    stream: blobStream,
    filter: blobDescriptions,
    from: 1,
    until: Number.MAX_SAFE_INTEGER,
    headersOnly: false,
  };
  const named = new Set<string>();
  for await (const { data } of readStream(reading)) {
    const json: unknown = JSON.parse(new TextDecoder().decode(data));
    const { nuid, deleted } = description.parse(json);
    if (!deleted) named.add(nuid);
  }
  return named;
}

/** Ids begin with the time of their making, in milliseconds. Other clients' names are as old as can be: never spared. */
function madeAtMs(nuid: string): number {
  return /^[0-9a-f]{32}$/.test(nuid) ? Number.parseInt(nuid.slice(0, 12), 16) : 0;
}
