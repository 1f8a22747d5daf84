// What it takes to forget a person in one policy. In: the policy's facts, with their places in the log. Out: whether its newest batch still
// names them, the versions that learned from them, the version that answers again, and the facts that go. Pure.
//
// A version learned from a person where its batch holds a turn of theirs, another's turn that they judged, or a question on which a lesson of
// theirs was rehearsed; and so did every version that was made from it.
import type { StoredFact } from '@backtalk/kit';
import type { BatchClosed, BatchSample } from '@backtalk/proto/facts';
import { answered, isUndecided } from './policy-facts.js';

export interface Person {
  /** Keyed hashes, as the log has them. */
  readonly tenant: string;
  readonly user: string;
}

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

export interface PolicyForgetting {
  readonly policy: string;
  /** Lessons of theirs that the newest batch holds. */
  readonly lessons: number;
  /** The newest batch names them: the trainer has not taken in that they are forgotten. */
  readonly isNamed: boolean;
  /** Every version that learned from them, newest first. */
  readonly learned: readonly string[];
  /** Those of them that answered and are not burned, newest first. */
  readonly burns: readonly string[];
  /** The version that answers without them; empty where none ever answered. */
  readonly to: string;
  /** The newest word on one of them holds what it answered. */
  readonly isQuoted: boolean;
  /** One of them that is being made or decided on; else empty. */
  readonly pending: string;
  /** Their manifests, and the manifests of all others: what only theirs name is theirs alone. */
  readonly manifests: { readonly theirs: readonly string[]; readonly others: readonly string[] };
  /** Places of the facts that name them or hold what those versions answered. */
  readonly facts: readonly number[];
}

export function forgettingOf(policy: string, person: Person, log: PolicyLog): PolicyForgetting {
  const messages = <M>(facts: readonly { readonly message: M }[]) => facts.map(({ message }) => message);
  const [batches, trained, staged] = [messages(log.batches), messages(log.trained), messages(log.staged)];
  const newest = batches.at(-1);
  const own = new Set(batches.flatMap(({ lessons }) => lessons.filter((one) => isOf(one, person)).map(({ id }) => id)));
  const taught = new Set(
    batches.filter(({ samples }) => samples.some(teaches(person, own))).map(({ number }) => number),
  );
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
  const manifestsOf = (isTheirs: boolean) =>
    trained.filter(({ version }) => learned.has(version) === isTheirs).map(({ manifestDigest }) => manifestDigest);
  return {
    policy,
    lessons: newest?.lessons.filter((one) => isOf(one, person)).length ?? 0,
    isNamed: newest !== undefined && names(newest, person),
    learned: [...learned].toReversed(),
    burns: first < 0 ? [] : line.slice(first).toReversed(),
    to: line[(first < 0 ? line.length : first) - 1] ?? '',
    isQuoted: quoted.some(isNewest),
    pending: isOpen ? open.version : '',
    manifests: { theirs: manifestsOf(true), others: manifestsOf(false) },
    // Batches last: by them it is known which versions learned.
    facts: [
      ...quoted.filter((fact) => !isNewest(fact)),
      ...log.changes.filter(({ message: { tenant, user } }) => tenant === person.tenant && user === person.user),
      ...log.batches.filter(({ message }) => message !== newest && names(message, person)),
    ].map(({ sequence }) => sequence),
  };
}

/** No fact that must stay holds anything of theirs any more. */
export function isReady({ isNamed, pending, burns, isQuoted }: PolicyForgetting): boolean {
  return !isNamed && pending === '' && burns.length === 0 && !isQuoted;
}

type Scoped = BatchClosed['lessons'][number];

function isOf({ scopeTenant, scopeUser, cases }: Scoped, { tenant, user }: Person): boolean {
  return scopeTenant === tenant && (scopeUser === user || cases.some((one) => one.user === user));
}

/** By the trainer's rule: where lessons hold for everyone, those that the person asked for are theirs. */
function teaches({ tenant, user }: Person, own: ReadonlySet<string>) {
  return (sample: BatchSample): boolean =>
    (sample.tenant === tenant && (sample.user === user || sample.giver === user)) ||
    sample.lessons.some((lesson) => own.has(lesson));
}

function names({ samples, settled, lessons, baselines }: BatchClosed, person: Person): boolean {
  const { tenant, user } = person;
  return (
    samples.some((one) => one.tenant === tenant && (one.user === user || one.giver === user)) ||
    settled.some((one) => one.tenant === tenant && one.user === user) ||
    lessons.some((one) => isOf(one, person)) ||
    baselines.some((one) => one.user === user)
  );
}
