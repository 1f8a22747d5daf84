// How a lesson is told to the person who gave it. In: lessons as `/v1/lessons` gives them. Out: cards in the order in
// which they matter. Pure.
import type { Compared } from './versions.js';

export type LessonState = 'heard' | 'active' | 'learned' | 'unteachable' | 'retired';

export interface Lesson {
  readonly id: string;
  readonly text: string;
  readonly state: string;
  /** Whether answers follow it by themselves. Gateways of before do not say. */
  readonly held?: boolean;
  /** Whether teachers are shown it now. Gateways of before do not say. */
  readonly shown?: boolean;
  readonly hints: number;
  readonly wordings: readonly string[];
  readonly progress: number | null;
  readonly steps: number;
  readonly ended_by: string | null;
  readonly covered_by: string | null;
  /** Gateways of before do not say. */
  readonly waits_for?: string | null;
  /** Whether this key may. Gateways of before do not say. */
  readonly may_change?: boolean;
  readonly pending: boolean;
  /** Gateways of before do not say. */
  readonly asked_again?: readonly Compared[];
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
  /** What was corrected, and what is answered to the same now. */
  readonly changed: readonly Compared[];
}

const labels: Readonly<Record<LessonState, string>> = {
  active: 'being learned',
  learned: 'learned',
  heard: 'heard, not a lesson yet',
  unteachable: 'this model cannot learn it by being told',
  retired: 'ended',
};
const order = Object.keys(labels);

function labelOf({ state, held }: Lesson): string {
  if (state === 'learned' && held === false) return 'learned in part';
  return state in labels ? labels[state as LessonState] : state;
}

/** Lessons that are taught in the words of another stand with it: to this model they are one wish. */
export function lessonCards(lessons: readonly Lesson[]): LessonCard[] {
  const ids = new Set(lessons.map(({ id }) => id));
  const coverOf = ({ covered_by: cover }: Lesson) => (cover !== null && ids.has(cover) ? cover : undefined);
  const placeOf = ({ state }: Lesson) => (order.includes(state) ? order.indexOf(state) : order.length);
  return lessons
    .filter((lesson) => coverOf(lesson) === undefined)
    .toSorted((a, b) => placeOf(a) - placeOf(b))
    .map((lesson) => ({
      id: lesson.id,
      text: lesson.text,
      state: lesson.state,
      label: lesson.pending ? `${labelOf(lesson)}, from the next step on` : labelOf(lesson),
      details: detailsOf(
        lesson,
        lessons.filter((other) => coverOf(other) === lesson.id),
      ),
      progress: lesson.progress === null ? undefined : Math.min(1, Math.max(0, lesson.progress)),
      mayEnd: lesson.state !== 'retired' && lesson.may_change !== false,
      changed: (lesson.asked_again ?? []).filter(({ before, after }) => before !== after),
    }));
}

const isInForce = ({ state }: Lesson) => state === 'active' || state === 'learned';

function detailsOf(lesson: Lesson, covered: readonly Lesson[]): string[] {
  const { steps, ended_by: endedBy, waits_for: first = null } = lesson;
  const hints = [lesson, ...covered].reduce((sum, one) => sum + one.hints, 0);
  const wordings = [...lesson.wordings, ...covered.flatMap((one) => [one.text, ...one.wordings])];
  const said = hints > 1 ? [`said ${String(hints)} times`] : [];
  const trained =
    steps > 0 ? [`${String(steps)} ${steps === 1 ? 'step' : 'steps'} of the optimiser trained on it`] : [];
  const other = wordings.length > 0 ? [`also in the words: ${wordings.map((one) => `“${one}”`).join(', ')}`] : [];
  const ended = endedBy === null ? [] : [endedBy === 'superseded' ? 'a newer wish ended it' : `ended by ${endedBy}`];
  const waiting = first === null ? [] : ['another wish is learned first'];
  const isLeftOut = isInForce(lesson) && first === null && lesson.shown === false;
  const room = isLeftOut ? ['no room beside newer ones: say it again, and it is taught again'] : [];
  return [...said, ...waiting, ...room, ...trained, ...other, ...ended];
}
