// Facts about lessons and their turns as the trainer and the gateway store them. For tests only.
import { fakePromptIds } from '@backtalk/dialects/testing';
import { FactPublisher } from '@backtalk/kit';
import type { TestNats } from '@backtalk/kit/testing';
import {
  BatchClosed,
  Conversation_Encoding,
  Lesson,
  Lesson_State,
  TurnCompleted,
  TurnOpened,
} from '@backtalk/proto/facts';

const person = { tenant: 'tenant0', user: 'user0' };

/** A learned lesson of one person; a test names what differs. */
export function learnedLesson(shape: Partial<Lesson> & { readonly turns?: readonly string[] } = {}): Lesson {
  const { turns = ['turn1'], ...fields } = shape;
  return Lesson.fromPartial({
    id: 'lesson1',
    text: 'Begin with indeed.',
    state: Lesson_State.STATE_LEARNED,
    scopeTenant: person.tenant,
    scopeUser: person.user,
    session: 'session1',
    cases: turns.map((turn) => ({ turn, ...person })),
    ...fields,
  });
}

export class LessonFacts {
  private sequence = 0;
  private batches = 0;

  constructor(
    private readonly nats: TestNats,
    private readonly policy = 'backtalk',
  ) {}

  /** What the trainer's newest batch says of all lessons. */
  async lessonsAre(...lessons: readonly Lesson[]): Promise<void> {
    this.batches += 1;
    const { policy, batches: number } = this;
    const batch = BatchClosed.fromPartial({ policy, number, lessons: [...lessons], why: 'lessons' });
    const publisher = new FactPublisher(await this.nats.connect('trainer'));
    this.sequence = (await publisher.publish('batchClosed', batch, { expectSequence: this.sequence })).sequence;
  }

  async turnIs(turn: string, more: Partial<TurnOpened> = {}): Promise<void> {
    const messages = [{ role: 'user', content: `Question of ${turn}?` }];
    const ids = { turn, ...person, policy: this.policy };
    const conversation = {
      encoding: Conversation_Encoding.ENCODING_JSON,
      messages: Buffer.from(JSON.stringify(messages)),
    };
    const opened = { ...ids, conversation, consent: { train: true, source: 'default' }, ...more };
    const completed = { ...ids, promptIds: fakePromptIds(messages), trainable: true };
    const publisher = new FactPublisher(await this.nats.connect('gateway'));
    await publisher.publish('turnOpened', TurnOpened.fromPartial(opened));
    await publisher.publish('turnCompleted', TurnCompleted.fromPartial(completed));
  }
}
