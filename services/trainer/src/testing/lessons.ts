// Lessons and wishes for tests of the domain; everything that a test does not name has a plain value.
import { Lesson, Lesson_State } from '@backtalk/proto/facts';

import type { Questions } from '../domain/asked-elsewhere.js';
import type { Hearing, Wish } from '../domain/lesson-ledger.js';
import { relateByWords } from '../domain/lexical-relation.js';

export function wish(shape: Partial<Wish> & Pick<Wish, 'text'>): Wish {
  return { turn: shape.text, tenant: 't', user: 'a', session: 's1', stands: false, saidAtMs: 0, ...shape };
}

export function lesson(shape: Partial<Lesson> = {}): Lesson {
  return Lesson.fromPartial({
    id: `lesson_${shape.text ?? ''}`,
    text: 'Answer in French.',
    state: Lesson_State.STATE_ACTIVE,
    scopeTenant: 't',
    scopeUser: 'a',
    session: 's1',
    ...shape,
  });
}

/** Every turn was asked something of its own, where no question is given. */
export function inBatch(batch: number, questions: Questions = ownQuestions): Hearing {
  return { batch, relate: relateByWords, questions };
}

class OwnQuestions extends Map<string, string> {
  override get(turn: string): string {
    return turn;
  }
}
const ownQuestions = new OwnQuestions();

export function onlyLesson(lessons: readonly Lesson[]): Lesson {
  const [only, ...others] = lessons;
  if (only === undefined || others.length > 0) throw new TypeError(`${lessons.length} lessons in place of one`);
  return only;
}
