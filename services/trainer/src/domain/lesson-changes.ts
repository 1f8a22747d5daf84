// What people and operators say of lessons in so many words (`lesson.changed`), taken into the ledger in the order of the log.
import { asWording } from '@backtalk/kit';
import { Lesson_State, LessonChanged_Action, type Lesson, type LessonChanged } from '@backtalk/proto/facts';

import { lessonsWithout } from './forgotten-people.js';
import { bounded, noSteps, replaced, retired, takenUp, withEnded, type LedgerChange } from './lesson-ledger.js';
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
  return bounded(changes.reduce((ledger, { message }) => withChange(ledger, message, change), [...lessons]));
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

function withChange(ledger: Lesson[], said: LessonChanged, change: LedgerChange): Lesson[] {
  if (said.action === LessonChanged_Action.ACTION_ERASE) return lessonsWithout(ledger, said);
  // Of another tenant, or gone: nothing that this one may change.
  const lesson = ledger.find(({ id, scopeTenant }) => id === said.lesson && scopeTenant === said.tenant);
  if (said.action === LessonChanged_Action.ACTION_ADD)
    return ledger.some(({ id }) => id === said.lesson) ? ledger : added(ledger, said, change);
  if (lesson === undefined) return ledger;
  switch (said.action) {
    case LessonChanged_Action.ACTION_EDIT: {
      // The words are given now: what was heard before is another wording no more, and says nothing of how far this one has come.
      const edited = {
        ...lesson,
        text: asWording(said.text),
        wordings: [],
        session: '',
        measures: [],
        ...noSteps(),
        coveredBy: '',
        cases: [],
        cameBack: false,
      };
      if (lesson.state === Lesson_State.STATE_RETIRED) return replaced(ledger, edited);
      const others = edited.text === lesson.text ? ledger : uncovered(ledger, lesson);
      return takenUp(others, edited, change, { ends: ['opposite', 'same'] });
    }
    case LessonChanged_Action.ACTION_RETIRE:
      return withEnded(ledger, [lesson], (ending) =>
        retired(ending, change.batch, said.giver === '' ? 'operator' : 'person'),
      );
    case LessonChanged_Action.ACTION_REACTIVATE:
      // What waits is active: it is the person's word that it waits no longer.
      if (lesson.state === Lesson_State.STATE_ACTIVE && lesson.waitsFor === '') return ledger;
      return takenUp(ledger, { ...lesson, measures: [], ...noSteps(), cameBack: false }, change);
    default:
      return ledger;
  }
}

/** What it covered asks for what it asks for no more. */
function uncovered(ledger: readonly Lesson[], { id }: Lesson): Lesson[] {
  return ledger.map((one) => (one.coveredBy === id ? { ...one, coveredBy: '', measures: [], ...noSteps() } : one));
}

/** A wish that is given is the newest word on its matter: older lessons that ask for the same end as well, so that it stands once. */
function added(
  ledger: readonly Lesson[],
  { lesson, text, tenant, user }: LessonChanged,
  change: LedgerChange,
): Lesson[] {
  const given: Lesson = {
    id: lesson,
    text: asWording(text),
    scopeUser: user,
    state: Lesson_State.STATE_ACTIVE,
    hints: 0,
    divergences: [],
    firstTurn: '',
    wordings: [],
    scopeTenant: tenant,
    session: '',
    endedBy: '',
    supersededBy: '',
    sinceBatch: change.batch,
    coveredBy: '',
    cases: [],
    measures: [],
    ...noSteps(),
    cameBack: false,
    waitsFor: '',
  };
  return takenUp(ledger, given, change, { ends: ['opposite', 'same'] });
}
