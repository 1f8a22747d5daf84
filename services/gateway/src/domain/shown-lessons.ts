// Which lessons is the model shown at answering time, and how does a request read with them?
//
// In: what is known of a policy's lessons, what its person lately said, and a request's messages. Out: those that are not learned yet,
// or no further than a part of the way, newest last, and the messages with them. A lesson that the weights hold is shown no more. Pure.
import {
  asWording,
  hintedMessages,
  inForce,
  inScope,
  ownWish,
  shownMax,
  templateTokenIn,
  weightsHold,
  type Speaker,
} from '@backtalk/kit';
import type { Lesson, ShownLessons, TurnJudged } from '@backtalk/proto/facts';
import { yes } from './trainability.js';
import { messageAt, withMessage, type WrittenMessages } from './written-messages.js';

export type Shown = ShownLessons['lessons'][number];

/** Of the message behind which lessons are shown: it is parsed again, between two turns of others. */
const messageBytesMax = 256 * 1024;

/** What a person said to hold from now on. */
export interface StandingWish {
  readonly turn: string;
  readonly text: string;
}

/** A lesson, once a batch takes the turn in. */
export function standingWish(judged: TurnJudged): StandingWish | undefined {
  const { text, stands, bare } = ownWish(judged);
  return stands && !bare && text !== '' ? { turn: judged.turn, text: asWording(text) } : undefined;
}

/** @param said standing wishes of that person, oldest first; those that became lessons count as their lessons do */
export function lessonsToShow(lessons: readonly Lesson[], said: readonly StandingWish[], speaker: Speaker): Shown[] {
  // What the weights hold takes no room from what they do not.
  const needed = inForce(
    lessons.filter((lesson) => !weightsHold(lesson)),
    speaker,
  );
  const shown = [
    ...needed.map(({ id, text }) => ({ lesson: id, text })),
    ...notYetLessons(lessons, said, speaker).map(({ text }) => ({ lesson: '', text })),
  ];
  return shown.filter(({ text }) => templateTokenIn(text) === undefined).slice(-shownMax);
}

/** Of what a person said, the wishes that no lesson of theirs holds. */
export function notYetLessons(
  lessons: readonly Lesson[],
  said: readonly StandingWish[],
  speaker: Speaker,
): StandingWish[] {
  const own = lessons.filter((lesson) => inScope(lesson, speaker));
  const isKnown = ({ turn, text }: StandingWish) =>
    own.some(
      (lesson) =>
        [lesson.text, ...lesson.wordings].includes(text) ||
        lesson.firstTurn === turn ||
        lesson.cases.some((one) => one.turn === turn),
    );
  return said.filter((wish) => !isKnown(wish));
}

/** Nothing where there is nothing to show, or no person's words to show it behind. */
export function withShown(
  messages: WrittenMessages,
  humanMessage: number,
  lessons: readonly Shown[],
): { readonly json: Uint8Array; readonly shown: ShownLessons } | undefined {
  if (lessons.length === 0 || humanMessage < 0) return undefined;
  const message = messageAt(messages, humanMessage, messageBytesMax);
  const texts = lessons.map(({ text }) => text);
  const [hinted] = (message === undefined ? undefined : hintedMessages([message], texts, 'human', 0)) ?? [];
  if (hinted === undefined) return undefined;
  const shown = { lessons: [...lessons], message: humanMessage };
  return { json: withMessage(messages, humanMessage, hinted), shown };
}

/** What a request says goes before the setting. */
export function showsLessons(setting: boolean, header: string | undefined): boolean {
  const said = header?.trim().toLowerCase() ?? '';
  return said === '' ? setting : yes.has(said);
}
