// What it takes for a policy never to have been taught a lesson. In: the policy's facts. Out: the lessons that end, the version that
// answers again, and what goes with it. Pure.
import { isInForce } from '@backtalk/kit';
import {
  Lesson_State,
  WeightsStaged_Stage,
  type BatchClosed,
  type BatchSample,
  type ComparedAnswer,
  type Lesson,
  type WeightsStaged,
  type WeightsTrained,
} from '@backtalk/proto/facts';

export interface PolicyFacts {
  /** Each kind in the order of the log. */
  readonly batches: readonly BatchClosed[];
  readonly trained: readonly WeightsTrained[];
  readonly staged: readonly WeightsStaged[];
}

export interface UndoPlan {
  /** The lesson and the wordings that it covers, as far as they have not ended. */
  readonly retired: readonly Lesson[];
  /** The version that answers again; empty where no version that answers was taught the lesson. */
  readonly to: string;
  /** Versions that were taught it, and all that were made from them, newest first. */
  readonly burned: readonly string[];
  /** Other lessons in force that these versions were taught: they are learned again. */
  readonly again: readonly Lesson[];
  /** What is answered otherwise then; `before` is what answers now. */
  readonly compared: readonly ComparedAnswer[];
}

/** Undefined where the policy has no such lesson. */
export function undoPlan(id: string, { batches, trained, staged }: PolicyFacts): UndoPlan | undefined {
  const lessons = batches.at(-1)?.lessons ?? [];
  const asked = lessons.find((lesson) => lesson.id === id);
  if (asked === undefined) return undefined;
  // Shown either, the base answers alike: without its cover, a wording would be taught in its place.
  const whole = asked.coveredBy || asked.id;
  const wordings = lessons.filter((lesson) => lesson.id === whole || lesson.coveredBy === whole);
  const ids = new Set(wordings.map((lesson) => lesson.id));
  const corrected = new Set(wordings.flatMap(({ firstTurn, cases }) => [firstTurn, ...cases.map(({ turn }) => turn)]));
  const teaches = ({ lessons: shown, hindsight, turn }: BatchSample) =>
    shown.some((lesson) => ids.has(lesson)) || (hindsight !== '' && corrected.has(turn));

  const batchOf = new Map(trained.map(({ version, batch }) => [version, batch]));
  const samplesOf = (version: string) => batches.find(({ number }) => number === batchOf.get(version))?.samples ?? [];
  const line = answered(staged);
  const first = line.findIndex((version) => samplesOf(version).some(teaches));
  const gone = first < 1 ? [] : line.slice(first);
  const taught = new Set(gone.flatMap((version) => samplesOf(version).flatMap((sample) => sample.lessons)));
  return {
    retired: wordings.filter(({ state }) => state !== Lesson_State.STATE_RETIRED),
    to: first < 1 ? '' : (line[first - 1] ?? ''),
    burned: gone.toReversed(),
    again: lessons.filter((lesson) => isInForce(lesson) && taught.has(lesson.id) && !ids.has(lesson.id)),
    compared: differences(staged.filter(({ version }) => gone.includes(version))),
  };
}

/** Versions that came to answer and were not burned, in that order; the last answers now. */
function answered(staged: readonly WeightsStaged[]): readonly string[] {
  return staged.reduce<readonly string[]>((line, { version, stage }) => {
    const others = line.filter((other) => other !== version);
    if (stage === WeightsStaged_Stage.STAGE_STABLE) return [...others, version];
    return stage === WeightsStaged_Stage.STAGE_BURNED ? others : line;
  }, []);
}

/** Each version was held against the one before it: the first answer of all to a question, and the last. */
function differences(staged: readonly WeightsStaged[]): ComparedAnswer[] {
  const found = new Map<string, ComparedAnswer>();
  for (const { question, before, after } of staged.flatMap(({ compared }) => compared))
    found.set(question, { question, before: after, after: found.get(question)?.after ?? before });
  return [...found.values()].filter(({ before, after }) => before !== after);
}
