// What people and operators say of lessons in so many words (`lesson.changed`), taken into the ledger in the order of the log.
import { asWording, isLeftOut } from '@backtalk/kit';
import { Lesson, Lesson_State, LessonChanged_Action, type LessonChanged } from '@backtalk/proto/facts';

import { lessonsWithout } from './forgotten-people.js';
import {
  anew,
  bounded,
  broughtBack,
  idFrom,
  noSteps,
  replaced,
  retired,
  takenUp,
  withEnded,
  type LedgerChange,
} from './lesson-ledger.js';
import { isOver } from './lessons-in-force.js';
import type { SaidWish } from './lesson-matching.js';

/** A change and where it stands in the log. */
export interface StoredChange {
  readonly message: LessonChanged;
  readonly sequence: number;
  /** Broker's time. */
  readonly timeMs: number;
}

export function withChanges(
  lessons: readonly Lesson[],
  changes: readonly StoredChange[],
  change: LedgerChange,
): Lesson[] {
  return bounded(changes.reduce((ledger, said) => withChange(ledger, said, change), [...lessons]));
}

/** What is taken up by these changes, and for whom. */
export function wishesIn(lessons: readonly Lesson[], changes: readonly StoredChange[]): SaidWish[] {
  return changes.flatMap(({ message: said }) => {
    if (said.action === LessonChanged_Action.ACTION_RETIRE) return [];
    const lesson = lessons.find(({ id, scopeTenant }) => id === said.lesson && scopeTenant === said.tenant);
    // One that is taken up again keeps its words.
    const text = asWording(said.text) || (lesson?.text ?? '');
    return text === '' ? [] : [{ tenant: said.tenant, user: lesson?.scopeUser ?? said.user, text }];
  });
}

function withChange(ledger: Lesson[], stored: StoredChange, change: LedgerChange): Lesson[] {
  const { message: said, timeMs: changedAtMs } = stored;
  if (said.action === LessonChanged_Action.ACTION_ERASE) return lessonsWithout(ledger, said);
  // Of another tenant, or gone: nothing that this one may change.
  const lesson = ledger.find(({ id, scopeTenant }) => id === said.lesson && scopeTenant === said.tenant);
  if (said.action === LessonChanged_Action.ACTION_ADD)
    return ledger.some(({ id }) => id === said.lesson) ? ledger : added(ledger, stored, change);
  if (lesson === undefined) return ledger;
  switch (said.action) {
    case LessonChanged_Action.ACTION_EDIT:
      return edited(ledger, lesson, stored, change);
    case LessonChanged_Action.ACTION_RETIRE:
      return withEnded(ledger, [lesson], (ending) => {
        const endedBy = said.giver === '' ? 'operator' : 'person';
        return { ...retired(ending, change.batch, endedBy), changedAtMs };
      });
    case LessonChanged_Action.ACTION_REACTIVATE: {
      const again = { ...lesson, changedAtMs };
      // What waits is active: it is the person's word that it waits no longer.
      if (lesson.state === Lesson_State.STATE_ACTIVE && lesson.waitsFor === '')
        return isLeftOut(lesson, ledger) ? broughtBack(ledger, again, change) : replaced(ledger, again);
      return takenUp(ledger, { ...anew(again), cameBack: false }, change, { ends: ['opposite', 'same'] });
    }
    default:
      return ledger;
  }
}

/**
 * The words are given now: what was heard before is another wording no more, and says nothing of how far this one has come. The words of before
 * are kept as what they are, a wish that is over.
 */
function edited(
  ledger: readonly Lesson[],
  lesson: Lesson,
  { message: said, timeMs: changedAtMs }: StoredChange,
  change: LedgerChange,
): Lesson[] {
  const now = {
    ...lesson,
    text: asWording(said.text),
    wordings: [],
    session: '',
    measures: [],
    ...noSteps(),
    coveredBy: '',
    cases: [],
    cameBack: false,
    changedAtMs,
  };
  const over = (one: Lesson) => ({ ...retired(one, change.batch, 'superseded', lesson.id), changedAtMs });
  const before = now.text === lesson.text ? [] : [{ ...over(lesson), id: idFrom(`${lesson.id} ${said.id}`) }];
  // What it covered is the wish of before in other words.
  const others = ledger.map((one) => (before.length > 0 && one.coveredBy === lesson.id ? over(one) : one));
  if (isOver(lesson)) return [...before, ...replaced(others, now)];
  return takenUp([...before, ...others], now, change, { ends: ['opposite', 'same'] });
}

/** A wish that is given is the newest word on its matter: older lessons that ask for the same end as well, so that it stands once. */
function added(
  ledger: readonly Lesson[],
  { message: { lesson, text, tenant, user }, timeMs: changedAtMs }: StoredChange,
  change: LedgerChange,
): Lesson[] {
  const given = Lesson.fromPartial({
    id: lesson,
    text: asWording(text),
    scopeUser: user,
    scopeTenant: tenant,
    sinceBatch: change.batch,
    changedAtMs,
  });
  return takenUp(ledger, given, change, { ends: ['opposite', 'same'] });
}
