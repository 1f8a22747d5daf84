// One stream of the broker as a stream of bytes, with its consumers, and back. It speaks the broker's own snapshot protocol
// (docs.nats.io, JetStream disaster recovery): chunks are acknowledged one by one, so that neither side runs ahead.
import { randomBytes } from 'node:crypto';
import type { Msg } from 'nats';
import { z } from 'zod';
import type { Broker } from '../broker/connect.js';
import { inboxPrefixOf } from '../topology/users.js';
import { backupErrors } from './backup.js';

const chunkBytes = 128 * 1024;
const askWithinMs = 30_000;
const chunkWithinMs = 30_000;

const shape = z.record(z.string(), z.unknown());
const started = z.object({ config: shape, state: shape });
const restoring = z.object({ deliver_subject: z.string() });
const refusal = z.object({ error: z.object({ description: z.string() }) });

interface SnapshotHead {
  /** The stream's configuration and state in the broker's own JSON. */
  readonly config: object;
  readonly state: Readonly<Record<string, unknown>>;
}

/** Gives the stream's bytes to `write`, chunk after chunk, while the broker goes on taking messages. */
export async function readSnapshot(
  broker: Broker,
  stream: string,
  write: (chunk: Uint8Array) => Promise<void>,
): Promise<z.infer<typeof started>> {
  const inbox = `${inboxPrefixOf(broker.user)}.${randomBytes(12).toString('hex')}`;
  const subscription = broker.nc.subscribe(inbox);
  try {
    const request = { deliver_subject: inbox, chunk_size: chunkBytes };
    const head = started.parse(await ask(broker, stream, `$JS.API.STREAM.SNAPSHOT.${stream}`, JSON.stringify(request)));
    const chunks = subscription[Symbol.asyncIterator]();
    for (;;) {
      const chunk = await nextChunk(stream, chunks);
      if (chunk.data.byteLength === 0) return head;
      await write(chunk.data);
      chunk.respond();
    }
  } finally {
    subscription.unsubscribe();
  }
}

/** Makes a stream that does not exist from a snapshot. Gives the number of messages that it then holds. */
export async function restoreSnapshot(
  broker: Broker,
  stream: string,
  head: SnapshotHead,
  chunks: AsyncIterable<Uint8Array>,
): Promise<number> {
  const start = await ask(broker, stream, `$JS.API.STREAM.RESTORE.${stream}`, JSON.stringify(head));
  const { deliver_subject: subject } = restoring.parse(start);
  for await (const chunk of chunks) {
    for (let from = 0; from < chunk.byteLength; from += chunkBytes) {
      await ask(broker, stream, subject, chunk.subarray(from, from + chunkBytes));
    }
  }
  const done = z.object({ state: z.object({ messages: z.number() }) }).parse(await ask(broker, stream, subject, ''));
  return done.state.messages;
}

async function ask(broker: Broker, stream: string, subject: string, data: Uint8Array | string): Promise<unknown> {
  const answer = await broker.ask({ subject, data, timeoutMs: askWithinMs, doing: `snapshot of ${stream}` });
  if (answer.data.byteLength === 0) return {};
  const said: unknown = answer.json();
  const refused = refusal.safeParse(said);
  if (refused.success) throw backupErrors.snapshotBroken({ stream, why: refused.data.error.description });
  return said;
}

async function nextChunk(stream: string, chunks: AsyncIterator<Msg>): Promise<Msg> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      reject(backupErrors.snapshotBroken({ stream, why: `no chunk came within ${String(chunkWithinMs / 1000)} s` }));
    }, chunkWithinMs);
  });
  try {
    const next = await Promise.race([chunks.next(), late]);
    if (next.done === true) throw backupErrors.snapshotBroken({ stream, why: 'the connection closed' });
    const { value } = next;
    if (value.data.byteLength === 0 && (value.headers?.code ?? 204) >= 400)
      throw backupErrors.snapshotBroken({ stream, why: value.headers?.description ?? 'the broker gave up' });
    return value;
  } finally {
    clearTimeout(timer);
  }
}
