// What it takes to forget a person in one policy. In: the policy's facts, with their places in the log. Out: whether its newest batch still
// names them, the versions that learned from them, the versions that could answer without those, and the facts that go. Pure.
//
// A version counts as theirs where its batch names them in any way (what a teacher was shown stands among its lessons), and so does every
// version that was made from it.
import type { StoredFact } from '@backtalk/kit';
import { LessonChanged_Action, type BatchClosed, type BatchSample } from '@backtalk/proto/facts';
import { answered, isUndecided } from './policy-facts.js';

export interface Person {
  /** Keyed hashes, as the log has them. */
  readonly tenant: string;
  readonly user: string;
}

/** What of others' turns holds their words: ids of turns, each with the revision of the judgement. */
export type SaidOfOthers = ReadonlySet<string>;
export const revisionOf = ({ turn, revision }: { readonly turn: string; readonly revision: number }): string =>
  `${turn} ${String(revision)}`;

type Kept<N extends 'batchClosed' | 'lessonChanged' | 'weightsTrained' | 'weightsStaged'> = Pick<
  StoredFact<N>,
  'message' | 'sequence'
>;

export interface PolicyLog {
  /** Each kind in the order of the log. */
  readonly batches: readonly Kept<'batchClosed'>[];
  readonly trained: readonly Kept<'weightsTrained'>[];
  readonly staged: readonly Kept<'weightsStaged'>[];
  readonly changes: readonly Kept<'lessonChanged'>[];
}

/** A version with its manifest's digest; empty of the base. */
export interface Answering {
  readonly version: string;
  readonly manifest: string;
}

export interface PolicyForgetting {
  readonly policy: string;
  /** Lessons of theirs that the newest batch holds. */
  readonly lessons: number;
  /** Of those, the ones that hold for everyone. */
  readonly shared: readonly string[];
  /** The newest batch names them: the trainer has not taken in that they are forgotten. */
  readonly isNamed: boolean;
  /** Every version that learned from them, newest first. */
  readonly learned: readonly string[];
  /** Those of them whose batch names them, and goes. */
  readonly named: readonly string[];
  /** Those of them that answered and are not burned, newest first. */
  readonly burns: readonly string[];
  /** Versions that answered before any of those, newest first. */
  readonly earlier: readonly Answering[];
  /** The newest word on one of them holds what it answered. */
  readonly isQuoted: boolean;
  /** One of them that is being made or decided on; else empty. */
  readonly pending: string;
  readonly manifests: readonly string[];
  /** Places of the facts that name them or hold what those versions answered. */
  readonly facts: readonly number[];
}

export function forgettingOf(
  policy: string,
  person: Person,
  log: PolicyLog,
  said: SaidOfOthers = new Set(),
): PolicyForgetting {
  const messages = <M>(facts: readonly { readonly message: M }[]) => facts.map(({ message }) => message);
  const [batches, trained, staged] = [messages(log.batches), messages(log.trained), messages(log.staged)];
  const newest = batches.at(-1);
  const changes = log.changes.filter(({ message: { tenant, user, giver } }) => isTheirs(person, tenant, user, giver));
  const own = new Set([
    ...batches.flatMap(({ lessons }) => lessons.filter((one) => isOf(one, person)).map(({ id }) => id)),
    ...changes.flatMap(({ message: { action, lesson } }) => (hasWords.has(action) ? [lesson] : [])),
  ]);
  const isNaming = (batch: BatchClosed) => names(batch, person, own, said);
  const taught = new Set(batches.filter(isNaming).map(({ number }) => number));
  const learned = new Set<string>();
  for (const { version, batch, parent } of trained) if (taught.has(batch) || learned.has(parent)) learned.add(version);
  const line = answered(staged);
  const first = line.findIndex((version) => learned.has(version));
  const quoted = log.staged.filter(({ message: { version, compared } }) => learned.has(version) && compared.length > 0);
  const newestWords = new Map(log.staged.map((fact) => [fact.message.version, fact]));
  const isNewest = (fact: Kept<'weightsStaged'>) => newestWords.get(fact.message.version) === fact;
  const open = batches.findLast(({ samples }) => samples.length > 0);
  const isOpen =
    open !== undefined &&
    (taught.has(open.number) || learned.has(open.parent)) &&
    isUndecided(open, { batches, trained, staged });
  const manifestOf = new Map(trained.map(({ version, manifestDigest }) => [version, manifestDigest]));
  const held = newest?.lessons.filter(({ id }) => own.has(id)) ?? [];
  return {
    policy,
    lessons: held.length,
    shared: held.filter(({ scopeUser }) => scopeUser === '').map(({ id }) => id),
    isNamed: newest !== undefined && isNaming(newest),
    learned: [...learned].toReversed(),
    named: trained.flatMap(({ version, batch }) => (taught.has(batch) ? [version] : [])),
    burns: first < 0 ? [] : line.slice(first).toReversed(),
    earlier: line
      .slice(0, first < 0 ? line.length : first)
      .toReversed()
      .map((version) => ({ version, manifest: manifestOf.get(version) ?? '' })),
    isQuoted: quoted.some(isNewest),
    pending: isOpen ? open.version : '',
    manifests: [...learned].flatMap((version) => manifestOf.get(version) ?? []),
    // Batches last: by them it is known which versions learned.
    facts: [
      ...quoted.filter((fact) => !isNewest(fact)),
      // One that the trainer has not taken in yet stays until it has.
      ...changes.filter(({ sequence }) => sequence <= (newest?.lessonsThrough ?? 0)),
      ...log.batches.filter(({ message }) => message !== newest && isNaming(message)),
    ].map(({ sequence }) => sequence),
  };
}

/** Versions that are burned for the sake of something that they were taught, and whose steps are still to be taken once more without it. */
export function notRepeatedYet({ batches, trained, staged }: PolicyLog): string[] {
  const undone = new Set(staged.flatMap(({ message }) => (message.undone ? [message.version] : [])));
  const repeated = new Set(batches.flatMap(({ message: { repeats, first } }) => [repeats, first]));
  return trained.flatMap(({ message: { version, batch } }) =>
    undone.has(version) && !repeated.has(batch) ? [version] : [],
  );
}

const hasWords = new Set([LessonChanged_Action.ACTION_ADD, LessonChanged_Action.ACTION_EDIT]);

/** No fact that must stay holds anything of theirs any more. */
export function isReady({ isNamed, pending, burns, isQuoted }: PolicyForgetting): boolean {
  return !isNamed && pending === '' && burns.length === 0 && !isQuoted;
}

type Scoped = BatchClosed['lessons'][number];

function isTheirs(person: Person, tenant: string, user: string, giver: string): boolean {
  return tenant === person.tenant && (user === person.user || giver === person.user);
}

function isOf({ scopeTenant, scopeUser, cases }: Scoped, { tenant, user }: Person): boolean {
  return scopeTenant === tenant && (scopeUser === user || cases.some((one) => one.user === user));
}

function names(batch: BatchClosed, person: Person, own: ReadonlySet<string>, said: SaidOfOthers): boolean {
  const { samples, settled, lessons, baselines, steps } = batch;
  const isSample = (sample: BatchSample) =>
    isTheirs(person, sample.tenant, sample.user, sample.giver) || said.has(revisionOf(sample));
  return (
    samples.some(isSample) ||
    settled.some(({ tenant, user }) => isTheirs(person, tenant, user, '')) ||
    lessons.some(({ id }) => own.has(id)) ||
    [...baselines, ...steps].some(({ user }) => user === person.user)
  );
}
