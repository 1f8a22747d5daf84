// How far each lesson has come, by what versions' answers show of it and by what became of those versions. What a step reports
// of its samples, whose teachers are shown every lesson in force together, moves no state: it says how much is left of all, not of which. Pure.
import {
  effectOf,
  farFrom,
  inForce,
  isInForce,
  isShown,
  measuresTogether,
  progressOf,
  type Speaker,
  type TurnIds,
} from '@backtalk/kit';
import {
  Lesson_State,
  type BatchClosed,
  type BatchSample,
  type Lesson,
  type LessonMeasure,
} from '@backtalk/proto/facts';
import type { SampleReport } from '@backtalk/proto/weights';

import { noSteps } from './lesson-ledger.js';
import type { Recipe } from './recipe.js';
import { distils } from './sample-worth.js';
import { isOfTurn } from './rehearsal.js';

/** A lesson whose progress is asked for, and the turns that it is asked on. */
export interface LessonToMeasure {
  readonly id: string;
  readonly text: string;
  /** What teachers are shown beside it: of a person, or of its scope where none is named. */
  readonly shown: (speaker?: Speaker) => ShownWith;
  readonly turns: readonly TurnIds[];
  /** Of these, what was corrected for its sake, and is read again by its person; of a lesson that holds for everyone none, since all would read it. */
  readonly corrected: ReadonlySet<string>;
  /** Questions of the trainer's own stand in where turns are few. */
  readonly fills: boolean;
}

/** In the teachers' order. */
export interface ShownWith {
  readonly told: readonly string[];
  /** Without the lesson. */
  readonly untold: readonly string[];
}

/** What was found, by lesson. */
export type Measured = ReadonlyMap<string, Omit<LessonMeasure, 'batch' | 'steps'>>;

const measuresMax = 16;
const askedMax = 64;
/** A learned lesson is looked at now and then: it costs as long as one that is being learned, which waits for it. */
const learnedEveryVersions = 3;

/** Of one lesson and one version; each costs three answers and six scores of them, and those of the base again where others hide the lesson. */
export const lessonTurnsMax = 4;
/** More than are asked: some are gone from the log or too long, and some are those of other lessons too. */
const turnsOfferedMax = 4 * lessonTurnsMax;

/** Of a recipe, what decides which lessons a batch was a step for, and how many. */
export type Stepped = Pick<Recipe, 'optimizerSteps' | 'method' | 'opdForm'>;

/**
 * A lesson has had the steps of a batch of which a sample was trained on whose teacher was shown it, or what covers it: in the words and from
 * the time of that batch. What was said of it while the step waited begins anew.
 */
export function afterStep(
  lessons: readonly Lesson[],
  batch: Pick<BatchClosed, 'number' | 'samples' | 'lessons'>,
  reports: readonly SampleReport[],
  recipe: Stepped,
): Lesson[] {
  // Where whole distributions are compared, a stale sample has lost its reward alone.
  const isWhole = distils(recipe);
  const isTrained = ({ dropped }: SampleReport) => dropped === '' || (isWhole && dropped === 'stale');
  const trained = new Set(reports.filter(isTrained).map(({ turn }) => turn));
  const taught = new Set(batch.samples.filter(({ turn }) => trained.has(turn)).flatMap((sample) => sample.lessons));
  const then = new Map(batch.lessons.map(({ id, text, sinceBatch }) => [id, `${sinceBatch} ${text}`]));
  return lessons.map((lesson) => {
    const isSame = then.get(lesson.id) === `${lesson.sinceBatch} ${lesson.text}`;
    const isTaught = taught.has(lesson.coveredBy || lesson.id) && isSame;
    if (!isTaught) return lesson;
    const stepped = [...lesson.stepped, { batch: batch.number, before: lesson.steps }].slice(-steppedMax);
    return { ...lesson, steps: lesson.steps + recipe.optimizerSteps, stepped };
  });
}

/**
 * Every lesson that teachers are shown: those that are being learned first, and of them and the others those first that were not asked for
 * longest. Learned ones are asked of every third version, and of the next one where they were found lost. Each on the turns that were corrected
 * for its sake, newest first, and then on others of its people.
 * @param madeBy the batch that made the version which is measured, of a line of versions
 * @param samples of the newest step: turns of its people, and what was rehearsed
 */
export function lessonsToMeasure(
  lessons: readonly Lesson[],
  { batch: madeBy, line }: { readonly batch: number; readonly line: Pick<VersionsSince, 'versionsAfter'> },
  samples: readonly BatchSample[],
  { rehearsalSteps, learnedShare }: Pick<Recipe, 'rehearsalSteps' | 'learnedShare'>,
): LessonToMeasure[] {
  const lastOf = ({ measures }: Lesson) => measures.at(-1)?.batch ?? 0;
  const isLearned = ({ state }: Lesson) => state === Lesson_State.STATE_LEARNED;
  const isDue = (lesson: Lesson) => {
    if (lastOf(lesson) >= madeBy) return false;
    const rests = isLearned(lesson) && !isLow(lesson.measures.at(-1), learnedShare);
    return !rests || line.versionsAfter(lastOf(lesson)) >= learnedEveryVersions;
  };
  return lessons
    .filter((lesson) => isShown(lesson) && lesson.scopeTenant !== '' && isDue(lesson))
    .toSorted((a, b) => Number(isLearned(a)) - Number(isLearned(b)) || lastOf(a) - lastOf(b))
    .map((lesson) => {
      const { id, text, cases, cameBack } = lesson;
      const others = samples.filter((sample) => isOfTurn(sample) && sample.lessons.includes(id));
      const byTurn = new Map([...cases.toReversed(), ...others].map((ids) => [ids.turn, ids]));
      const turns = [...byTurn.values()].slice(0, turnsOfferedMax);
      const corrected = new Set(lesson.scopeUser === '' ? [] : cases.map(({ turn }) => turn));
      const scope = { tenant: lesson.scopeTenant, user: lesson.scopeUser };
      const shown = (speaker: Speaker = scope) => shownWith(lesson, inForce(lessons, speaker));
      return { id, text, shown, turns, corrected, fills: rehearsalSteps > 0 && !cameBack };
    })
    .filter(({ turns, fills }) => turns.length > 0 || fills)
    .slice(0, askedMax);
}

/** Alone where teachers are shown too many newer ones to be shown it. */
function shownWith({ id, text }: Lesson, shown: readonly Lesson[]): ShownWith {
  const untold = shown.filter((other) => other.id !== id);
  if (untold.length === shown.length) return { told: [text], untold: [] };
  return { told: shown.map((one) => one.text), untold: untold.map((one) => one.text) };
}

/**
 * What is covered comes as far as its cover: to the base the two are one wish.
 * @param madeBy number of the batch that made the version which was measured
 */
export function afterMeasures(
  lessons: readonly Lesson[],
  measured: Measured,
  madeBy: number,
  learnedShare: number,
): Lesson[] {
  const moved = lessons.map((lesson) => {
    const found = measured.get(lesson.id);
    if (found === undefined) return lesson;
    const before = lesson.measures.map((measure) => ({ ...measure, askedAgain: [] }));
    const measures = [...before, { ...found, batch: madeBy, steps: lesson.steps }].slice(-measuresMax);
    const state = stateAfter({ ...lesson, measures }, learnedShare);
    return { ...lesson, measures, state, sinceBatch: state === lesson.state ? lesson.sinceBatch : madeBy };
  });
  return moved.map((lesson) => {
    const cover = moved.find(({ id }) => id === lesson.coveredBy);
    if (cover === undefined || !isInForce(lesson) || cover.state === lesson.state) return lesson;
    return { ...lesson, state: cover.state, sinceBatch: cover.sinceBatch };
  });
}

/** Of the measurements that decide together. */
const turnsMin = 6;
/** A lesson that changes the base's answers less than this, in nats an answer, changes nothing that could be learned. */
export const effectMinNats = 2;
/** Of fewer measurements, an effect that is too small decides alone. */
const effectDecides = 5;
/** In this many of the optimiser's steps that trained on a lesson its progress must rise by so much, whenever they are counted from: */
const riseMin = 0.1;
/** of one that has come far; */
const patienceSteps = 5;
/** and of one that has not, which is given up then: an emoji, which the base never writes unasked, did not show after four and was there after eight. */
const givingUpSteps = 10;
/** A learned lesson is lost at this share of what made it learned: what is near the bound does not go to and fro. */
const lostAt = 0.5;

function stateAfter(lesson: Lesson, learnedShare: number): Lesson_State {
  const { state, measures, steps } = lesson;
  const recent = measures.slice(-measuresTogether);
  const turns = recent.reduce((sum, measure) => sum + measure.turns, 0);
  if (recent.length < measuresTogether || turns < turnsMin) return state;
  const shares = recent.map((measure) => progressOf([measure]) ?? 0);
  // Of the base, so that no version changes it: the more is measured, the better it is known.
  const hasEffect = (effectOf(measures) ?? 0) >= effectMinNats;
  // Measured alone, an answer that follows other lessons too shows little of this one: that is not held against it. What is given up is shown to
  // no teacher, and unlearned; so it is taken for learned in the end, as far as the others carry it.
  const isHidden = recent.some(({ hidden }) => hidden);
  if (state === Lesson_State.STATE_LEARNED) {
    const isLost = hasEffect && recent.every((measure) => isLow(measure, learnedShare));
    return isLost ? Lesson_State.STATE_ACTIVE : state;
  }
  if (state !== Lesson_State.STATE_ACTIVE) return state;
  // To questions about nothing in particular, a wish about something in particular says nothing.
  const ofPeople = recent.reduce((sum, measure) => sum + measure.turns - measure.questions, 0);
  const isFar = (progressOf(recent) ?? 0) >= farFrom;
  // Later, and of one that has come far, what it has come to decides: a lesson that was half learned would be let go of, and unlearned.
  const isBegun = steps >= patienceSteps && isFar;
  if (!hasEffect && !isBegun && measures.length < effectDecides)
    return ofPeople >= turnsMin ? Lesson_State.STATE_UNTEACHABLE : state;
  if (shares.every((share) => share >= learnedShare)) return Lesson_State.STATE_LEARNED;
  if (!hasStalled(lesson, isFar ? patienceSteps : givingUpSteps)) return state;
  return isFar || isHidden ? Lesson_State.STATE_LEARNED : Lesson_State.STATE_UNTEACHABLE;
}

/** Of a learned lesson; what is hidden says nothing against it. */
function isLow(measure: LessonMeasure | undefined, learnedShare: number): boolean {
  return measure?.hidden === false && (progressOf([measure]) ?? 0) < learnedShare * lostAt;
}

function hasStalled({ steps, measures }: Lesson, patience: number): boolean {
  if (steps < patience) return false;
  const before = measures.filter((measure) => measure.steps <= steps - patience).slice(-measuresTogether);
  const now = progressOf(measures.slice(-measuresTogether)) ?? 0;
  return now - (progressOf(before) ?? 0) < riseMin;
}

/** What the line of versions says of a batch. */
export interface VersionsSince {
  /** The version that it made is burned, or built upon a burned one. */
  isUndone(batch: number): boolean;
  versionsAfter(batch: number): number;
}

const lookAgainVersions = 20;

/**
 * What an undone version showed of a lesson is forgotten, with the steps that made it. What was decided of one by such a version is open again;
 * one that could not be taught is looked at again after a while.
 */
export function afterVersions(lessons: readonly Lesson[], line: VersionsSince, batch: number): Lesson[] {
  return lessons.map((before) => {
    // Versions are undone from the newest back.
    const lastSound = before.measures.findLastIndex((measure) => !line.isUndone(measure.batch));
    const measures = before.measures.slice(0, lastSound + 1);
    const isAsBefore = measures.length === before.measures.length;
    const lesson = isAsBefore ? withoutUndoneSteps(before, line) : { ...before, measures, ...stepsOf(measures) };
    const { state, sinceBatch } = lesson;
    const isDecided = state === Lesson_State.STATE_LEARNED || state === Lesson_State.STATE_UNTEACHABLE;
    const isForgotten = isDecided && line.isUndone(sinceBatch);
    const isDue = state === Lesson_State.STATE_UNTEACHABLE && line.versionsAfter(sinceBatch) >= lookAgainVersions;
    if (!isForgotten && !isDue) return lesson;
    return { ...lesson, state: Lesson_State.STATE_ACTIVE, measures: [], ...noSteps(), sinceBatch: batch };
  });
}

function stepsOf(measures: readonly LessonMeasure[]): ReturnType<typeof noSteps> {
  return { ...noSteps(), steps: measures.at(-1)?.steps ?? 0 };
}

const steppedMax = 8;

/** Of versions that were burned before they were measured; they are undone from the newest back. */
function withoutUndoneSteps(lesson: Lesson, line: VersionsSince): Lesson {
  const first = lesson.stepped.findIndex(({ batch }) => line.isUndone(batch));
  if (first < 0) return lesson;
  return { ...lesson, steps: lesson.stepped[first]?.before ?? 0, stepped: lesson.stepped.slice(0, first) };
}
