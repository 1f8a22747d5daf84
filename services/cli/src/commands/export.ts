// `export`: turns, judgements or batches as JSON lines, on standard output or into a file.
import { accessSync, constants, existsSync, realpathSync, statSync } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { FactReader, TurnLog, type BlobStore, type Broker, type StoredFact } from '@backtalk/kit';
import {
  BatchClosed,
  TurnCompleted,
  TurnContinued,
  TurnJudged,
  TurnOpened,
  WeightsStaged,
  WeightsTrained,
} from '@backtalk/proto/facts';
import { withBroker } from '../connection.js';
import type { CommandContext } from '../shell.js';
import { conversationOf } from '../conversation.js';

export const exportKinds = ['turns', 'judgements', 'batches'] as const;
export type ExportKind = (typeof exportKinds)[number];

const factsOf = {
  turns: ['turnOpened', 'turnCompleted', 'turnContinued'],
  judgements: ['turnJudged'],
  batches: ['batchClosed', 'weightsTrained', 'weightsStaged'],
} as const;

type Exported = (typeof factsOf)[ExportKind][number];

function body(fact: StoredFact<Exported>): unknown {
  switch (fact.name) {
    case 'turnOpened':
      return TurnOpened.toJSON({ ...fact.message, conversation: undefined });
    case 'turnCompleted':
      return TurnCompleted.toJSON(fact.message);
    case 'turnContinued':
      return TurnContinued.toJSON(fact.message);
    case 'turnJudged':
      return TurnJudged.toJSON(fact.message);
    case 'batchClosed':
      return BatchClosed.toJSON(fact.message);
    case 'weightsTrained':
      return WeightsTrained.toJSON(fact.message);
    case 'weightsStaged':
      return WeightsStaged.toJSON(fact.message);
  }
}

/** For its owner alone. Written beside it and put in its place when it is whole: what was there stays until then. */
async function writeWhole(path: string, lines: AsyncIterable<string>): Promise<void> {
  const place = existsSync(path) ? realpathSync(path) : resolve(path);
  const beside = mayBeReplaced(place) ? `${place}.${process.pid}.part` : place;
  try {
    const file = await open(beside, 'w', 0o600);
    if (beside !== place) await file.chmod(0o600);
    await pipeline(lines, file.createWriteStream());
    if (beside !== place) await rename(beside, place);
  } catch (error) {
    if (beside !== place) await rm(beside, { force: true });
    // A failed write does not say of which file, and what is missing is the folder.
    const isMissing = error instanceof Error && 'code' in error && error.code === 'ENOENT';
    throw error instanceof Error ? Object.assign(error, { path: isMissing ? dirname(place) : path }) : error;
  }
}

/** A device, a pipe and what a process holds open have nothing that could be kept, and in some folders nothing new may be made. */
function mayBeReplaced(place: string): boolean {
  if (/^\/(?:dev|proc)\//.test(place) || statSync(place, { throwIfNoEntry: false })?.isFile() === false) return false;
  try {
    accessSync(dirname(place), constants.W_OK);
    return true;
  } catch {
    // Written in place.
    return false;
  }
}

/** False where standard output takes no more of it, of which main.ts tells. */
async function print(lines: AsyncIterable<string>): Promise<boolean> {
  try {
    await pipeline(lines, process.stdout, { end: false });
    return true;
  } catch (error) {
    if (error instanceof Error && 'syscall' in error && error.syscall === 'write') return false;
    throw error;
  }
}

export async function exportFacts(
  { connection, output, signal }: CommandContext,
  kind: ExportKind,
  file: string | undefined,
): Promise<void> {
  let count = 0;
  const linesOf = async function* (broker: Broker, blobs: BlobStore) {
    const reader = new FactReader(broker, blobs);
    const log = new TurnLog(reader);
    const names: readonly Exported[] = factsOf[kind];
    for await (const fact of reader.read(names, { signal })) {
      // All, unless one is named.
      if (connection.isPolicyNamed === true && fact.message.policy !== connection.policy) continue;
      const line = {
        fact: fact.name,
        sequence: fact.sequence,
        time: new Date(fact.timeMs).toISOString(),
        body: body(fact),
        ...(fact.name === 'turnOpened' ? { conversation: (await conversationOf(log, fact.message)) ?? null } : {}),
      };
      yield `${JSON.stringify(line)}\n`;
      count += 1;
    }
    // Half of a log is no export.
    signal.throwIfAborted();
  };
  const isWhole = await withBroker(connection, async (broker, blobs) => {
    const lines = linesOf(broker, blobs);
    if (file === undefined) return print(lines);
    await writeWhole(file, lines);
    return true;
  });
  if (!isWhole) return;
  output.complain(`${String(count)} facts exported${file === undefined ? '' : ` to ${file}`}.`);
}
