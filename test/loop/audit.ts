// The auditor: holds what clients wrote down against log, batches, versions and routes.
// In: the ledger and everything stored. Out: one line for each thing that is lost, doubled or mixed up. Pure.
import { WeightsStaged_Stage, type TurnCompleted } from '@backtalk/proto/facts';
import type { FactLog } from './fact-log.js';
import { givingUpOf } from './given-up.js';
import { agrees, type LedgerRow } from './ledger.js';

export interface Evidence {
  readonly ledger: readonly LedgerRow[];
  readonly log: FactLog;
}

const base = 'backtalk-v0';

export function audit(evidence: Evidence): string[] {
  const checks = [onceEach, answersStored, onlyKnownTurns, continued, judged, samples, chain, staging, deadLetters];
  return checks.flatMap((check) => check(evidence));
}

function onceEach({ log }: Evidence): string[] {
  return [
    ...repeats(
      'turn.opened',
      log.opened.map(({ message }) => message.turn),
    ),
    ...repeats(
      'turn.completed',
      log.completed.map(({ message }) => message.turn),
    ),
    ...repeats(
      'turn.continued',
      log.continued.map(({ message }) => message.turn),
    ),
    ...repeats(
      'turn.judged',
      log.judged.map(({ message }) => `${message.turn} revision ${String(message.revision)}`),
    ),
    ...repeats(
      'batch.closed',
      log.batches.map(({ message }) => String(message.number)),
    ),
    ...repeats(
      'weights.trained',
      log.trained.map(({ message }) => message.version),
    ),
  ];
}

function repeats(what: string, keys: readonly string[]): string[] {
  const seen = new Set<string>();
  return keys.flatMap((key) => {
    if (seen.has(key)) return [`${what} ${key} is in the log twice`];
    seen.add(key);
    return [];
  });
}

/** Promise: every turn whose client saw the final frame is in the log, as the client saw it, made by one version. */
function answersStored({ ledger, log }: Evidence): string[] {
  const opened = new Set(log.opened.map(({ message }) => message.turn));
  const completed = new Map(log.completed.map(({ message }) => [message.turn, message]));
  return ledger.flatMap((row) => {
    const stored = completed.get(row.turn);
    const problems: string[] = [];
    if (row.finished && !opened.has(row.turn)) problems.push(`turn ${row.turn} was answered and its question is lost`);
    if (row.finished && stored === undefined) problems.push(`turn ${row.turn} was answered and its answer is lost`);
    if (stored === undefined) return problems;
    if (!agrees(row, stored.text)) problems.push(`turn ${row.turn} is stored with another answer than the client saw`);
    problems.push(...mixedWeights(row, stored));
    if (!row.finished && stored.trainable && !isWhole(stored.finishReason)) {
      problems.push(`turn ${row.turn} was cut off and may be trained on`);
    }
    return problems;
  });
}

/** What the header promised, and what the engine said in its first and in its last frame. */
function mixedWeights(row: LedgerRow, { weightsVersion: start, weightsVersionAtEnd: end, trainable }: TurnCompleted) {
  const isOne = row.weights === start && start === end;
  // An engine that failed before its first frame named no weights.
  if (isOne || (!row.finished && (start === '' || row.weights === '') && start === end)) return [];
  const said = `labelled ${row.weights}, and the engine said ${start} at the start and ${end} at the end`;
  return [`turn ${row.turn} was ${said}${trainable ? ', and it may be trained on' : ''}`];
}

/** The turns of finished answers that are not by one version, from the header to the last frame. */
export function mixedTurns(ledger: readonly LedgerRow[], log: Pick<FactLog, 'completed'>): string[] {
  const completed = new Map(log.completed.map(({ message }) => [message.turn, message]));
  return ledger.flatMap((row) => {
    const stored = row.finished ? completed.get(row.turn) : undefined;
    return stored !== undefined && mixedWeights(row, stored).length > 0 ? [row.turn] : [];
  });
}

/** A client that was cut after the answer was stored lost its last frame, and nothing else. */
function isWhole(finishReason: string): boolean {
  return finishReason === 'stop' || finishReason === 'length';
}

/** A turn that no client knows can only come from a request whose head never arrived. */
function onlyKnownTurns({ ledger, log }: Evidence): string[] {
  const known = new Set(ledger.map(({ turn }) => turn));
  const headless = ledger.filter(({ turn }) => turn === '').length;
  const unknown = log.completed.filter(({ message }) => !known.has(message.turn));
  return unknown.length > headless ? [`${String(unknown.length)} turns are stored that no client asked for`] : [];
}

function continued({ ledger, log }: Evidence): string[] {
  const facts = new Map(log.continued.map(({ message }) => [message.turn, message]));
  return ledger
    .filter(({ continues, finished }) => continues !== '' && finished)
    .flatMap(({ continues, turn }) => {
      const fact = facts.get(continues);
      if (fact === undefined) return [`turn ${continues} was continued and its next state is lost`];
      return fact.continuedBy === turn
        ? []
        : [`turn ${continues} was continued by ${turn}, not by ${fact.continuedBy}`];
    });
}

function judged({ log }: Evidence): string[] {
  const verdicts = new Set(log.judged.map(({ message }) => message.turn));
  return log.continued
    .filter(({ message }) => message.consent?.train !== false && !verdicts.has(message.turn))
    .map(({ message }) => `turn ${message.turn} was continued and is not judged`);
}

/** Promise: no sample is trained twice; none that was refused, cut off or never judged is trained at all. */
function samples({ ledger, log }: Evidence): string[] {
  const completed = new Map(log.completed.map(({ message }) => [message.turn, message]));
  const verdicts = new Set(log.judged.map(({ message }) => `${message.turn} ${String(message.revision)}`));
  const optedOut = new Set(ledger.filter((row) => row.optedOut).map(({ turn }) => turn));
  const taken = log.batches.flatMap(({ message }) => message.samples);
  const wrong = taken.flatMap(({ turn, revision }) => {
    if (optedOut.has(turn)) return [`turn ${turn} is in a batch, and its client said no`];
    if (completed.get(turn)?.trainable !== true) return [`turn ${turn} is in a batch and is not trainable`];
    return verdicts.has(`${turn} ${String(revision)}`) ? [] : [`turn ${turn} is in a batch without its verdict`];
  });
  return [
    ...repeats(
      'the sample',
      taken.map(({ turn }) => turn),
    ),
    ...wrong,
  ];
}

/** Every batch with samples made one version, from a parent that was there and not burned, unless a guard skipped its step. */
function chain({ log }: Evidence): string[] {
  const trained = new Map(log.trained.map(({ message }) => [message.version, message]));
  const burnedAt = new Map(
    log.staged
      .filter(({ message }) => message.stage === WeightsStaged_Stage.STAGE_BURNED)
      .map(({ message, sequence }) => [message.version, sequence]),
  );
  return log.batches
    .filter(({ message }) => message.samples.length > 0)
    .flatMap((batch) => {
      const { version, parent, number } = batch.message;
      const { sequence } = batch;
      const made = trained.get(version);
      const problems: string[] = [];
      const isSkipped = givingUpOf(log.batches, batch)?.message.why === 'step_skipped';
      if (made === undefined && !isSkipped)
        problems.push(`batch ${String(number)} was closed and ${version} was never trained`);
      else if (made !== undefined && (isSkipped || made.batch !== number || made.parent !== parent))
        problems.push(`${version} is not of its batch`);
      if (parent !== base && !trained.has(parent)) problems.push(`${version} has the unknown parent ${parent}`);
      if ((burnedAt.get(parent) ?? Infinity) < sequence)
        problems.push(`${version} was built upon the burned ${parent}`);
      return problems;
    });
}

/** What served had been staged, and what is routed is what was decided last. */
function staging({ ledger, log }: Evidence): string[] {
  const staged = new Set(log.staged.map(({ message }) => message.version));
  const unstaged = ledger
    .filter(({ weights }) => weights !== '' && weights !== base && !staged.has(weights))
    .map(({ turn, weights }) => `turn ${turn} was answered by ${weights}, which was never staged`);
  const { routes } = log;
  if (routes === undefined) return unstaged;
  const decided = lastDecided(log);
  const versions = new Set([routes.stable, ...routes.routes.map(({ version }) => version)]);
  const routed = `${[...versions].join(' and ')} by the fence ${String(routes.fence)}`;
  const behind = routed === decided ? [] : [`the routes lead to ${routed}, and what was decided last is ${decided}`];
  const share = routes.routes.reduce((sum, route) => sum + route.share, 0);
  const shares = Math.abs(share - 1) > 1e-9 ? [`the shares of the routes add up to ${String(share)}`] : [];
  return [...unstaged, ...behind, ...shares];
}

/** What is to answer, by the fact that decided it: where what was stable is burned, the one before it answers again. */
function lastDecided({ staged }: FactLog): string {
  let line: readonly string[] = [];
  let fence = 0;
  for (const { message, sequence } of staged) {
    const { version, stage } = message;
    const others = line.filter((one) => one !== version);
    if (stage === WeightsStaged_Stage.STAGE_STABLE) [line, fence] = [[...others, version], sequence];
    if (stage === WeightsStaged_Stage.STAGE_BURNED)
      [line, fence] = [others, line.at(-1) === version ? sequence : fence];
  }
  return `${line.at(-1) ?? ''} by the fence ${String(fence)}`;
}

function deadLetters({ log }: Evidence): string[] {
  return log.deadLetters === 0 ? [] : [`${String(log.deadLetters)} facts became dead letters`];
}
