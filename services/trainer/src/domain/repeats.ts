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
  const open = chain.lostTheirParent().filter(({ parent }) => names.has(parent));
  return [...undone.map(({ batch }) => batch), ...open.map(({ number }) => number)]
    .filter((number) => !chain.isRepeated(number))
    .toSorted((a, b) => chain.originalOf(a) - chain.originalOf(b));
}

interface Upon {
  readonly parent: string;
  /** Nothing of theirs is repeated. */
  readonly forgotten: readonly Person[];
}

/**
 * The same samples, seed and plan upon another parent. Teachers are shown those of the lessons that are in force now, in their words of now.
 * Undefined where nothing is left to learn: all of it was for the sake of lessons that have ended.
 */
export function repeatedBatch(end: ChainEnd, batch: BatchClosed, { parent, forgotten }: Upon): BatchClosed | undefined {
  const { policy, chain, state } = end;
  const { seed, configDigest, klBeta, number } = batch;
  const people = new Set(forgotten.map(({ user }) => user));
  // A judgement that was revised may say once more what one of them said of it before.
  const isSafe = ({ user, giver, revision }: BatchSample) =>
    people.size === 0 || (revision === 0 && !people.has(user) && !people.has(giver));
  const samples = samplesLeft(batch, state.lessons).filter(isSafe);
  if (!samples.some((sample) => sample.effective || !isOfTurn(sample))) return undefined;
  const version = versionName(policy, chain.nextVersionNumber());
  const step = { parent, version, samples, seed, configDigest, klBeta, repeats: number };
  return BatchClosed.fromPartial({ ...settlingBatch(end, [], 'repeated'), ...step });
}

/** A fact that nothing of the batch is repeated: nothing is left to learn, or the log or its plan are gone. */
export function notRepeated(end: ChainEnd, batch: number, why: 'nothing_left' | 'gone'): BatchClosed {
  return { ...settlingBatch(end, [], 'not_repeated', why), repeats: batch };
}

function samplesLeft({ samples, lessons }: BatchClosed, now: readonly Lesson[]): BatchSample[] {
  const present = new Map(now.map((lesson) => [lesson.id, lesson]));
  const shown = new Set(now.flatMap((lesson) => (isInForce(lesson) ? [lesson.id] : [])));
  const learning = new Set(lessons.flatMap(({ id, state }) => (state === Lesson_State.STATE_ACTIVE ? [id] : [])));
  // Each ledger names the newest corrections of a lesson.
  const hasEnded = ({ id }: Lesson) =>
    (present.get(id)?.state ?? Lesson_State.STATE_RETIRED) === Lesson_State.STATE_RETIRED;
  const ended = [...lessons, ...now].filter(hasEnded);
  const askedFor = new Set(ended.flatMap(({ firstTurn, cases }) => [firstTurn, ...cases.map(({ turn }) => turn)]));
  return samples.flatMap((sample) => {
    const left = { ...sample, lessons: sample.lessons.filter((id) => shown.has(id)) };
    // A question is there for the sake of what was being learned.
    if (!isOfTurn(sample)) return left.lessons.some((id) => learning.has(id)) ? [left] : [];
    const isTaught = left.lessons.length > 0 || sample.hindsight !== '';
    const isRewarded = sample.effective && sample.advantage !== 0;
    return askedFor.has(sample.turn) || !(isTaught || isRewarded) ? [] : [left];
  });
}
