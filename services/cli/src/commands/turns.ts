// `turns trim`: old turns leave the log, with the payloads that lie beside it. It reads what the log holds of each turn, without text,
// decides, and then deletes fact by fact, oldest turns first; stopped half-way, the same command goes on.
import { FactReader, idsOfSubject, settledSequences, systemClock } from '@backtalk/kit';
import { confirm } from '../confirm.js';
import { withBroker, type Connection } from '../connection.js';
import { cliErrors } from '../errors.js';
import type { Output } from '../output.js';
import { hashedTenant, hashedUser } from '../owner.js';
import type { CommandContext } from '../shell.js';
import { interruptedStatus } from '../stop-signal.js';
import { deleteRows, sizeOf, type Deleted, type LogTools } from '../delete-rows.js';
import { needs, TrimPlanner, trimmedFacts, type Need, type TrimPlan } from '../trim-plan.js';

export interface TrimFlags {
  /** Milliseconds. */
  readonly olderThan: number;
  readonly tenant?: string;
  readonly user?: string;
  readonly alsoNeeded: boolean;
  readonly dryRun: boolean;
  readonly yes: boolean;
}

export async function trimTurns({ connection, output, signal }: CommandContext, flags: TrimFlags): Promise<void> {
  const owner = ownerOf(connection, flags);
  await withBroker(connection, async (broker, blobs) => {
    const plan = await planTrim({ broker, blobs, output, signal }, owner, flags);
    const planned = await sizeOf(broker, plan.rows);
    const { turns, stays } = plan;
    if (flags.dryRun || plan.rows.length === 0) {
      output.value({ dryRun: flags.dryRun, ended: 'done', turns, ...planned, stays });
      output.line(inWords(turns, planned, flags.dryRun ? 'would go' : 'are gone'));
      sayWhatStays(output, stays);
      return;
    }
    const question = `Delete ${inWords(turns, planned, 'from the log for good')} Go on?`;
    if (!flags.yes && !(await confirm(question))) throw cliErrors.confirmationNeeded();
    const trimmed = await deleteRows({ broker, blobs, output, signal }, plan.rows);
    const ended = signal.aborted ? 'interrupted' : 'done';
    if (signal.aborted) process.exitCode ??= interruptedStatus;
    output.value({ dryRun: false, ended, turns, ...trimmed, stays });
    output.line(
      inWords(turns, trimmed, signal.aborted ? 'were to go; interrupted: the same command goes on' : 'are gone'),
    );
    sayWhatStays(output, stays);
  });
}

interface Owner {
  readonly tenant?: string;
  readonly user?: string;
}

/** As subjects name them. */
function ownerOf(connection: Connection, { tenant, user }: TrimFlags): Owner {
  if (tenant === undefined && user === undefined) return {};
  return {
    tenant: hashedTenant(connection, tenant),
    ...(user === undefined ? {} : { user: hashedUser(connection, user, tenant) }),
  };
}

async function planTrim(
  { broker, blobs, output, signal }: LogTools,
  owner: Owner,
  { olderThan, alsoNeeded }: TrimFlags,
): Promise<TrimPlan> {
  const reader = new FactReader(broker, blobs);
  const beforeMs = systemClock.now() - olderThan;
  // Before the facts: what is settled later only stays.
  const settled = await settledSequences(broker);
  const planner = new TrimPlanner({ beforeMs, alsoNeeded, settled });
  for await (const { message } of reader.read(['batchClosed'], { signal })) planner.addBatch(message);
  const { state } = await broker.jsm.streams.info('TURNS');
  const progress = output.progress('reading', state.messages);
  const filter = Object.fromEntries(trimmedFacts.map((name) => [name, owner]));
  let read = 0;
  try {
    for await (const row of reader.headers(trimmedFacts, { filter, signal })) {
      planner.add({ ...row, ids: idsOfSubject(row.name, row.subject) });
      progress.update((read += 1), 'facts');
    }
  } finally {
    progress.stop();
  }
  return planner.plan();
}

const stayWords: Readonly<Record<Need, string>> = {
  batch: "of a policy's newest batch",
  candidate: 'judged, and in no batch yet',
  in_progress: 'not settled yet by a service that takes it',
  continued: 'continued by a turn that stays',
};

function sayWhatStays(output: Output, stays: Readonly<Record<Need, number>>): void {
  const rows = needs.filter((need) => stays[need] > 0).map((need) => [String(stays[need]), stayWords[need]]);
  if (rows.length === 0) return;
  output.line('');
  output.table(['old turns that stay', 'why'], rows);
  if (stays.batch + stays.candidate + stays.in_progress > 0)
    output.line('What the trainer needs goes with --also-needed, and is never learned from then.');
}

function inWords(turns: number, { facts, bytes, payloads, payloadBytes: beside }: Deleted, end: string): string {
  const log = `${String(turns)} turns (${String(facts)} facts, ${megabytes(bytes)} of the log)`;
  return `${payloads === 0 ? log : `${log} and ${String(payloads)} payloads beside it (${megabytes(beside)})`} ${end}.`;
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}
