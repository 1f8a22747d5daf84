// What it takes for a policy never to have been taught a lesson. In: the policy's facts. Out: the lessons that end, the version that
// answers again, and what goes with it. Pure.
import { isInForce, type StoredFact } from '@backtalk/kit';
import {
  Lesson,
  Lesson_State,
  LessonChanged_Action,
  type BatchClosed,
  type BatchSample,
  type ComparedAnswer,
  type LessonChanged,
  type WeightsStaged,
} from '@backtalk/proto/facts';
import { answered, isUndecided, type PolicyFacts } from './policy-facts.js';

const { STATE_ACTIVE, STATE_RETIRED } = Lesson_State;
const { ACTION_ADD, ACTION_ERASE } = LessonChanged_Action;

export interface UndoPlan {
  /** The lesson and the wordings that it covers, as far as they have not ended. */
  readonly retired: readonly Lesson[];
  /** The version that answers again; empty where no version that answers was taught the lesson. */
  readonly to: string;
  /** A version that was taught it and is still being made or decided on; else empty. */
  readonly pending: string;
  /** Versions that were taught it, and all that were made from them, newest first. */
  readonly burned: readonly string[];
  /** Other lessons in force that these versions were taught: they are learned again. */
  readonly again: readonly Lesson[];
  /** What is answered otherwise then; `before` is what answers now. */
  readonly compared: readonly ComparedAnswer[];
}

/** What was said of a lesson in so many words, and where that stands in the log. */
export type SaidOfLesson = Pick<StoredFact<'lessonChanged'>, 'message' | 'sequence'>;

/** Undefined where the policy has no such lesson. */
export function undoPlan(
  id: string,
  { batches, trained, staged }: PolicyFacts,
  said: readonly SaidOfLesson[] = [],
): UndoPlan | undefined {
  const newest = batches.at(-1);
  const lessons = [...(newest?.lessons ?? []), ...givenSince(newest, said)];
  const asked = lessons.find((lesson) => lesson.id === id);
  if (asked === undefined) return undefined;
  // Shown either, the base answers alike: without its cover, a wording would be taught in its place.
  const whole = asked.coveredBy || asked.id;
  const together = lessons.filter((lesson) => lesson.id === whole || lesson.coveredBy === whole);
  const known = new Set(together.map((lesson) => lesson.id));
  // What has ended is covered no more: the log knows what was.
  const before = coveredTogether(batches, known);
  const wordings = lessons.filter(({ id, state }) => known.has(id) || (before.has(id) && state === STATE_RETIRED));
  const ids = new Set(wordings.map((lesson) => lesson.id));
  const corrected = new Set(wordings.flatMap(({ firstTurn, cases }) => [firstTurn, ...cases.map(({ turn }) => turn)]));
  const teaches = ({ lessons: shown, hindsight, turn }: BatchSample) =>
    shown.some((lesson) => ids.has(lesson)) || (hindsight !== '' && corrected.has(turn));

  const batchOf = new Map(trained.map(({ version, batch }) => [version, batch]));
  const samplesOf = (version: string) => batches.find(({ number }) => number === batchOf.get(version))?.samples ?? [];
  const line = answered(staged);
  // One may answer still that was made upon a burned one: an undo that was broken off left it.
  const parentOf = new Map(trained.map(({ version, parent }) => [version, parent]));
  const burnt = new Set(staged.flatMap(({ version, undone }) => (undone ? [version] : [])));
  const first = line.findIndex((version) => samplesOf(version).some(teaches) || burnt.has(parentOf.get(version) ?? ''));
  const gone = first < 1 ? [] : line.slice(first);
  const open = batches.findLast(({ samples }) => samples.length > 0);
  const isOpen = open !== undefined && isUndecided(open, { batches, trained, staged }) && open.samples.some(teaches);
  const taught = new Set(gone.flatMap((version) => samplesOf(version).flatMap((sample) => sample.lessons)));
  return {
    retired: wordings.filter(({ state }) => state !== STATE_RETIRED),
    pending: isOpen ? open.version : '',
    to: first < 1 ? '' : (line[first - 1] ?? ''),
    burned: gone.toReversed(),
    again: lessons.filter((lesson) => isInForce(lesson) && taught.has(lesson.id) && !ids.has(lesson.id)),
    compared: differences(staged.filter(({ version }) => gone.includes(version))),
  };
}

/** Lessons that no batch has taken in yet: they have taught nothing. */
function givenSince(newest: BatchClosed | undefined, said: readonly SaidOfLesson[]): Lesson[] {
  const since = said.filter(({ sequence }) => sequence > (newest?.lessonsThrough ?? 0)).map(({ message }) => message);
  const isForgotten = ({ tenant, user }: LessonChanged) =>
    since.some((one) => one.action === ACTION_ERASE && one.tenant === tenant && one.user === user);
  return since
    .filter((one) => one.action === ACTION_ADD && !isForgotten(one))
    .map(({ lesson: id, text, tenant: scopeTenant, user: scopeUser }) =>
      Lesson.fromPartial({ id, text, scopeTenant, scopeUser, state: STATE_ACTIVE }),
    );
}

/** Ids of what these covered or were covered by, at any time. */
function coveredTogether(batches: readonly BatchClosed[], known: ReadonlySet<string>): ReadonlySet<string> {
  const all = batches.flatMap(({ lessons }) => lessons);
  const covers = new Set([...known, ...all.flatMap(({ id, coveredBy }) => (known.has(id) ? [coveredBy] : []))]);
  covers.delete('');
  return new Set([...covers, ...all.flatMap(({ id, coveredBy }) => (covers.has(coveredBy) ? [id] : []))]);
}

/** Each version was held against the one before it: the first answer of all to a question, and the last. */
function differences(staged: readonly WeightsStaged[]): ComparedAnswer[] {
  const found = new Map<string, ComparedAnswer>();
  for (const { question, before, after } of staged.flatMap(({ compared }) => compared))
    found.set(question, { question, before: after, after: found.get(question)?.after ?? before });
  return [...found.values()].filter(({ before, after }) => before !== after);
}
