// `batches`: what became of each batch; `batches abandon`: one that stands in the way of learning is given up.
import { abandonedBatch, FactReader, givenUpBy, systemClock, triedStep, type Broker } from '@backtalk/kit';
import type { BatchClosed } from '@backtalk/proto/facts';
import { confirm } from '../confirm.js';
import { withBroker } from '../connection.js';
import type { CommandContext } from '../shell.js';
import { cliErrors } from '../errors.js';

type State = 'open' | 'trained' | 'given_up' | 'settled';

interface BatchRow {
  readonly policy: string;
  readonly number: number;
  readonly version: string;
  readonly state: State;
  readonly samples: number;
  readonly settled: number;
  /** Of a batch that is open. */
  readonly tries: number;
  readonly why: string;
}

const meanings: readonly (readonly [State, string])[] = [
  ['open', 'its step is still to be taken'],
  ['trained', 'it made the version beside it, which the gate may have burned (npx backtalk versions)'],
  ['given_up', 'no version will ever come of it; the last column says why'],
  ['settled', 'no step: it says what became of turns that are not trained on, or what was said or measured of lessons'],
];
const shownMax = 50;
/** The trainer looks at it at once, or after the pause between two tries. */
const givenUpWithinMs = 60_000;
const lookEveryMs = 250;

async function readBatches(broker: Broker, reader: FactReader, policy: string): Promise<BatchRow[]> {
  const batches: BatchClosed[] = [];
  const trained = new Set<number>();
  const filter = { batchClosed: { policy }, weightsTrained: { policy } };
  for await (const fact of reader.read(['batchClosed', 'weightsTrained'], { filter })) {
    if (fact.name === 'batchClosed') batches.push(fact.message);
    else trained.add(fact.message.batch);
  }
  const tried = (await triedStep(broker, policy).get())?.value;
  return batches.map((batch, index) => {
    const { number, version, samples, settled, why } = batch;
    // A batch is given up by the next fact that says so, before another batch is closed.
    const following = batches.slice(index + 1);
    const next = following.findIndex((later) => later.samples.length > 0);
    const end = (next < 0 ? following : following.slice(0, next)).find((later) => givenUpBy.has(later.why));
    const state = stateOf(batch, trained.has(number), end !== undefined);
    const tries = state === 'open' && tried?.batch === number ? tried.tries : 0;
    const reason = end === undefined ? why : [end.why, end.detail].filter((word) => word !== '').join(': ');
    return {
      policy,
      number,
      version,
      state,
      samples: samples.length,
      settled: settled.length,
      tries,
      why: state === 'given_up' ? reason : why,
    };
  });
}

function stateOf({ samples }: BatchClosed, isTrained: boolean, isGivenUp: boolean): State {
  if (samples.length === 0) return 'settled';
  if (isTrained) return 'trained';
  return isGivenUp ? 'given_up' : 'open';
}

export async function listBatches({ connection, output }: CommandContext): Promise<void> {
  const { policy } = connection;
  const rows = await withBroker(connection, (broker, blobs) =>
    readBatches(broker, new FactReader(broker, blobs), policy),
  );
  const shown = rows.slice(-shownMax);
  for (const row of shown) output.value(row);
  if (shown.length === 0) {
    output.line(`No batch of ${policy} yet: one closes when enough was said that can be learned from.`);
    return;
  }
  output.table(
    ['batch', 'version', 'state', 'samples', 'settled', 'tries', 'why'],
    shown.map(({ number, version, state, samples, settled, tries, why }) => [
      String(number),
      version,
      state.replace('_', ' '),
      String(samples),
      String(settled),
      String(tries),
      why,
    ]),
  );
  output.line('');
  for (const [state, meaning] of meanings)
    if (shown.some((row) => row.state === state)) output.line(`${state.replace('_', ' ')}: ${meaning}`);
  const open = shown.find(({ state, tries }) => state === 'open' && tries > 1);
  if (open === undefined) return;
  output.line('');
  output.line(`Give up a batch that cannot be trained: npx backtalk batches abandon ${policy} ${String(open.number)}`);
}

export async function abandonBatch(
  { connection, output, signal }: CommandContext,
  policy: string,
  number: number,
  isSure: boolean,
): Promise<void> {
  await withBroker(connection, async (broker, blobs) => {
    const reader = new FactReader(broker, blobs);
    const row = await findBatch(broker, reader, policy, number);
    if (row.state !== 'open') throw cliErrors.batchEnded({ policy, number, state: row.state.replace('_', ' ') });
    const question = `Give up batch ${String(number)} of ${policy}? Its ${String(row.samples)} samples are never trained on.`;
    if (!isSure && !(await confirm(question))) throw cliErrors.confirmationNeeded();
    await abandonedBatch(broker, policy).put({ batch: number });
    const deadlineMs = systemClock.now() + givenUpWithinMs;
    for (;;) {
      const { state, why } = await findBatch(broker, reader, policy, number);
      if (state !== 'open') {
        output.value({ policy, batch: number, state, why });
        output.line(
          state === 'given_up'
            ? `Batch ${String(number)} of ${policy} is given up; learning goes on with the next one.`
            : `Batch ${String(number)} of ${policy} was trained before it could be given up.`,
        );
        return;
      }
      if (signal.aborted || systemClock.now() > deadlineMs) throw cliErrors.abandonPending({ policy, number });
      await systemClock.sleep(lookEveryMs, signal).catch(() => undefined);
    }
  });
}

async function findBatch(broker: Broker, reader: FactReader, policy: string, number: number): Promise<BatchRow> {
  const row = (await readBatches(broker, reader, policy)).find((one) => one.number === number);
  if (row === undefined)
    throw cliErrors.nothingFound({ what: `batch ${String(number)} of ${policy} (npx backtalk batches lists them)` });
  return row;
}
