// A word that lessons end. In: the lessons as the ledger has them. Out: a fact for each.
import { FactPublisher, newId } from '@backtalk/kit';
import { LessonChanged, LessonChanged_Action, type Lesson } from '@backtalk/proto/facts';
import { withBrokerAlone, type Connection } from './connection.js';
import { giverHere } from './owner.js';

export async function retireLessons(connection: Connection, lessons: readonly Lesson[]): Promise<void> {
  const { policy } = connection;
  const giver = await giverHere(connection);
  await withBrokerAlone(connection, async (broker) => {
    const publisher = new FactPublisher(broker);
    for (const { id: lesson, scopeTenant: tenant, scopeUser: user } of lessons) {
      const said = { id: newId(), tenant, user, policy, action: LessonChanged_Action.ACTION_RETIRE, lesson, giver };
      await publisher.publish('lessonChanged', LessonChanged.fromPartial(said));
    }
  });
}
