// After an undo: which steps are taken once more, and on what. In: the ledger. Out: batches of before without the lessons that have ended
// since, so that what others taught the burned versions is not lost with them. Pure.
import { isInForce, versionName } from '@backtalk/kit';
import { BatchClosed, Lesson_State, type BatchSample, type Lesson } from '@backtalk/proto/facts';

import type { BatchChain } from './batch-chain.js';
import { settlingBatch, type ChainEnd } from './batch-fact.js';
import type { Person } from './forgotten-people.js';
import { isOfTurn } from './rehearsal.js';
import type { VersionLine } from './version-line.js';

/** Numbers of batches that are to be repeated, in the order in which their samples were first trained on. */
export function stepsToRepeat(chain: BatchChain, line: VersionLine): readonly number[] {
  const undone = line.undone();
  const names = new Set(undone.map(({ version }) => version));
  // What was being repeated is to be repeated whatever its parent was burned for.
  const open = chain.lostTheirParent().filter(({ parent, repeats }) => repeats > 0 || names.has(parent));
  return [...undone.map(({ batch }) => batch), ...open.map(({ number }) => number)]
    .filter((number) => !chain.isRepeated(number))
    .toSorted((a, b) => chain.originalOf(a) - chain.originalOf(b));
}

interface Upon {
  readonly parent: string;
  /** Of the batch whose samples they were first: it knows who asked for what, which later ones may know no more. */
  readonly first: BatchClosed;
  /** Nothing of theirs is repeated. */
  readonly forgotten: readonly Person[];
}

/**
 * The same samples, seed and plan upon another parent. Teachers are shown those of the lessons that are in force now, in their words of now.
 * Undefined where nothing is left to learn: all of it was for the sake of lessons that have ended.
 */
export function repeatedBatch(
  end: ChainEnd,
  batch: BatchClosed,
  { parent, first, forgotten }: Upon,
): BatchClosed | undefined {
  const { policy, chain, state } = end;
  const { seed, configDigest, klBeta, number } = batch;
  const people = new Set(forgotten.map(({ user }) => user));
  // A judgement that was revised may say once more what one of them said of it before.
  const isSafe = ({ user, giver, revision }: BatchSample) =>
    people.size === 0 || (revision === 0 && !people.has(user) && !people.has(giver));
  const samples = samplesLeft(batch, first, state.lessons).filter(isSafe);
  if (!samples.some((sample) => sample.effective || !isOfTurn(sample))) return undefined;
  const version = versionName(policy, chain.nextVersionNumber());
  const step = { parent, version, samples, seed, configDigest, klBeta, repeats: number, first: first.number };
  return BatchClosed.fromPartial({ ...settlingBatch(end, [], 'repeated'), ...step });
}

export type NotRepeated = 'nothing_left' | 'gone' | 'other_rank';

/** A fact that nothing of the batch is repeated: nothing is left to learn, log or plan are gone, or adapters are of another shape now. */
export function notRepeated(end: ChainEnd, batch: number, why: NotRepeated): BatchClosed {
  return { ...settlingBatch(end, [], 'not_repeated', why), repeats: batch, first: end.chain.originalOf(batch) };
}

function samplesLeft({ samples, lessons }: BatchClosed, first: BatchClosed, now: readonly Lesson[]): BatchSample[] {
  const present = new Map(now.map((lesson) => [lesson.id, lesson]));
  const shown = new Set(now.flatMap((lesson) => (isInForce(lesson) ? [lesson.id] : [])));
  const learning = new Set(lessons.flatMap(({ id, state }) => (state === Lesson_State.STATE_ACTIVE ? [id] : [])));
  // One that was heard and is in no ledger any more has made room for newer ones; one that was in force is undone with its person.
  const hasEnded = (lesson: Lesson) => {
    const { state } = present.get(lesson.id) ?? {
      state: isInForce(lesson) ? Lesson_State.STATE_RETIRED : lesson.state,
    };
    return state === Lesson_State.STATE_RETIRED;
  };
  // Each ledger names the newest corrections of a lesson.
  const ended = [...first.lessons, ...lessons, ...now].filter(hasEnded);
  const askedFor = new Set(ended.flatMap(({ firstTurn, cases }) => [firstTurn, ...cases.map(({ turn }) => turn)]));
  const gone = new Set(ended.map(({ id }) => id));
  return samples.flatMap((sample) => {
    const left = { ...sample, lessons: sample.lessons.filter((id) => shown.has(id)) };
    // A question is there for the sake of what was being learned.
    if (!isOfTurn(sample)) return left.lessons.some((id) => learning.has(id)) ? [left] : [];
    const isTaught = left.lessons.length > 0 || sample.hindsight !== '';
    // A "no" where an ended lesson alone was taught may have been for its sake, though the ledgers do not name it.
    const mayBeForIt = sample.verdict < 0 && sample.lessons.some((id) => gone.has(id));
    const isRewarded = sample.effective && sample.advantage !== 0 && !mayBeForIt;
    return askedFor.has(sample.turn) || !(isTaught || isRewarded) ? [] : [left];
  });
}
