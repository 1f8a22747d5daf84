// How a lesson is told to the person who gave it. In: lessons as `/v1/lessons` gives them. Out: cards in the order in
// which they matter. Pure.

export type LessonState = 'heard' | 'active' | 'learned' | 'unteachable' | 'retired';

export interface Lesson {
  readonly id: string;
  readonly text: string;
  readonly state: string;
  readonly hints: number;
  readonly wordings: readonly string[];
  readonly progress: number | null;
  readonly steps: number;
  readonly ended_by: string | null;
  readonly covered_by: string | null;
  readonly pending: boolean;
}

export interface LessonCard {
  readonly id: string;
  readonly text: string;
  readonly state: string;
  readonly label: string;
  readonly details: readonly string[];
  /** 0 to 1; undefined before it was measured. */
  readonly progress: number | undefined;
  readonly mayEnd: boolean;
}

const labels: Readonly<Record<LessonState, string>> = {
  active: 'being learned',
  learned: 'learned',
  heard: 'heard once',
  unteachable: 'this model cannot learn it by being told',
  retired: 'ended',
};
const order = Object.keys(labels);

function labelOf(state: string): string {
  return state in labels ? labels[state as LessonState] : state;
}

export function lessonCards(lessons: readonly Lesson[]): LessonCard[] {
  const texts = new Map(lessons.map(({ id, text }) => [id, text]));
  const placeOf = ({ state }: Lesson) => (order.includes(state) ? order.indexOf(state) : order.length);
  return lessons
    .toSorted((a, b) => placeOf(a) - placeOf(b))
    .map((lesson) => ({
      id: lesson.id,
      text: lesson.text,
      state: lesson.state,
      label: lesson.pending ? `${labelOf(lesson.state)}, from the next step on` : labelOf(lesson.state),
      details: detailsOf(lesson, texts),
      progress: lesson.progress === null ? undefined : Math.min(1, Math.max(0, lesson.progress)),
      mayEnd: lesson.state !== 'retired',
    }));
}

function detailsOf(lesson: Lesson, texts: ReadonlyMap<string, string>): string[] {
  const { hints, steps, wordings, ended_by: endedBy, covered_by: cover } = lesson;
  const said = hints > 1 ? [`said ${String(hints)} times`] : [];
  const trained = steps > 0 ? [`${String(steps)} ${steps === 1 ? 'step' : 'steps'} trained on it`] : [];
  const other = wordings.length > 0 ? [`also in the words: ${wordings.map((one) => `“${one}”`).join(', ')}`] : [];
  const covered = cover === null ? [] : [`taught in the words “${texts.get(cover) ?? cover}”`];
  const ended = endedBy === null ? [] : [endedBy === 'superseded' ? 'a newer wish ended it' : `ended by ${endedBy}`];
  return [...said, ...trained, ...other, ...covered, ...ended];
}
