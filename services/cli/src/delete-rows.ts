// Takes facts of turns out of the log, with the payloads that lie beside it. In: rows, in the order in which they go. Out: how much went;
// stopped half-way, the same command goes on.
import {
  deleteFacts,
  dropPayload,
  markGoing,
  payloadBytes,
  type BlobStore,
  type Broker,
  type DeletionOptions,
} from '@backtalk/kit';
import type { Output } from './output.js';
import type { TrimmedRow } from './trim-plan.js';

/** What goes, or went. */
export interface Deleted {
  facts: number;
  bytes: number;
  payloads: number;
  payloadBytes: number;
}

export interface LogTools {
  readonly broker: Broker;
  readonly blobs: BlobStore;
  readonly output: Output;
  readonly signal: AbortSignal;
}

export async function sizeOf(broker: Broker, rows: readonly TrimmedRow[]): Promise<Deleted> {
  const size = nothing();
  for (const row of rows) await count(broker, size, row);
  return size;
}

const nothing = (): Deleted => ({ facts: 0, bytes: 0, payloads: 0, payloadBytes: 0 });

async function count(broker: Broker, sum: Deleted, { bytes, payload }: TrimmedRow): Promise<void> {
  sum.facts += 1;
  sum.bytes += bytes;
  if (payload === undefined) return;
  sum.payloads += 1;
  sum.payloadBytes += await payloadBytes(broker, payload);
}

const atOnce = 256;

/** @param overwrite their bytes are overwritten on the broker's disk */
export async function deleteRows(
  { broker, blobs, output, signal }: LogTools,
  rows: readonly TrimmedRow[],
  { overwrite = false }: { readonly overwrite?: boolean } = {},
): Promise<Deleted> {
  const deleted = nothing();
  const progress = output.progress('deleting', rows.length);
  try {
    for (let start = 0; start < rows.length && !signal.aborted; start += atOnce) {
      const group = rows.slice(start, start + atOnce);
      for (const row of group) await count(broker, deleted, row);
      await deleteGroup({ broker, blobs }, group, { overwrite });
      progress.update(deleted.facts, 'facts');
    }
  } finally {
    progress.stop();
  }
  return deleted;
}

/** Facts of a policy, from the stream of weights. */
export async function deletePolicyFacts(tools: Stores, sequences: readonly number[], payloads: readonly Row[]) {
  const beside = new Map(payloads.map((row) => [row.sequence, row]));
  const rows = sequences.map((sequence) => beside.get(sequence) ?? { sequence, payload: undefined });
  await deleteGroup(tools, rows, { from: 'WEIGHTS', overwrite: true });
}

type Stores = Pick<LogTools, 'broker' | 'blobs'>;

interface Row extends Pick<TrimmedRow, 'sequence' | 'payload'> {
  /** Of a fact of a policy. */
  readonly subject?: string;
}

async function deleteGroup({ broker, blobs }: Stores, rows: readonly Row[], options: DeletionOptions): Promise<void> {
  const sequences = rows.map(({ sequence }) => sequence);
  for (const { payload, subject } of rows) if (payload !== undefined) await markGoing(broker, payload, subject);
  await deleteFacts(broker, sequences, options);
  // After their facts: a fact without its payload could not be read.
  for (const { payload } of rows) if (payload !== undefined) await dropPayload(broker, blobs, payload);
}
