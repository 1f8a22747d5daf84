// Takes single facts out of the log, for an operator's command, and says up to where services have settled what they take.
// In: sequences. Out: nothing is left of them; a repeat changes nothing. Which facts may go is the caller's to know.
import { NatsError } from 'nats';
import type { Broker } from '../broker/connect.js';
import { brokerError } from '../broker/translate.js';
import { catalogue, durables, type FactName, type FactStream } from '../topology/catalogue.js';
import { durableOf } from '../topology/subjects.js';

const { stream } = catalogue.turnOpened;
const atOnce = 64;
const noMessageFound = 10037;
const deletionFailed = 10057;

export interface DeletionOptions {
  /** Of turns, when left out. */
  readonly from?: FactStream;
  /** Their bytes are overwritten on the broker's disk. */
  readonly overwrite?: boolean;
}

export async function deleteFacts(
  broker: Broker,
  sequences: readonly number[],
  { from = stream, overwrite = false }: DeletionOptions = {},
): Promise<void> {
  const deleteFact = async (sequence: number) => {
    try {
      await broker.jsm.streams.deleteMessage(from, sequence, overwrite);
    } catch (error) {
      if (!isGone(error)) throw brokerError(error, { doing: 'delete a fact', stream: from });
    }
  };
  for (let start = 0; start < sequences.length; start += atOnce)
    await Promise.all(sequences.slice(start, start + atOnce).map(deleteFact));
}

/** By age, or by a command that was repeated. */
function isGone(error: unknown): boolean {
  if (!(error instanceof NatsError)) return false;
  const { err_code: code, description = '' } = error.api_error ?? {};
  return code === noMessageFound || (code === deletionFailed && /no message found|message not found/.test(description));
}

/**
 * By fact: every one with this sequence or a lower one is settled by those who take it. 0 where one of them has not begun; absent for
 * facts that no service takes.
 */
export async function settledSequences(broker: Broker): Promise<ReadonlyMap<FactName, number>> {
  const floors: { readonly durable: string; readonly floor: number }[] = [];
  try {
    for await (const { name: durable, ack_floor: floor } of broker.jsm.consumers.list(stream))
      floors.push({ durable, floor: floor.stream_seq });
  } catch (error) {
    throw brokerError(error, { doing: 'look for consumers', stream });
  }
  const settled = new Map<FactName, number>();
  for (const { service, name } of durables.filter((durable) => durable.stream === stream)) {
    const durable = durableOf(service, name);
    const own = floors.filter((row) => row.durable === durable || row.durable.startsWith(`${durable}_`));
    const floor = own.length === 0 ? 0 : Math.min(...own.map((row) => row.floor));
    settled.set(name, Math.min(floor, settled.get(name) ?? floor));
  }
  return settled;
}
