// `rollback`: the version before this one answers again, at once; the one rolled back is burned. Its lessons are learned again, or retired.
import { FactPublisher, FactReader, grpcClient, newId, watchLeases } from '@backtalk/kit';
import { PublisherControlServiceDefinition } from '@backtalk/proto/control';
import { Lesson_State, LessonChanged, LessonChanged_Action, type BatchClosed } from '@backtalk/proto/facts';
import { withBroker, type Connection } from '../connection.js';
import type { CommandContext } from '../shell.js';
import { cliErrors } from '../errors.js';

const rollbackWithinMs = 30_000;

export interface RollbackFlags {
  readonly why: string;
  /** The lessons that the version was being taught are retired. */
  readonly forget: boolean;
}

export async function rollback({ connection, output }: CommandContext, { why, forget }: RollbackFlags): Promise<void> {
  const address = await withBroker(connection, async (broker) => {
    const view = await watchLeases(broker, 'publisher');
    try {
      return view.current().find((lease) => lease.grpcAddress !== '')?.grpcAddress;
    } finally {
      view.stop();
    }
  });
  if (address === undefined) throw cliErrors.unreachable({ what: 'The publisher', url: connection.natsUrl });
  const publisher = grpcClient(PublisherControlServiceDefinition, address, {
    caller: 'cli',
    wire: connection.wire,
  });
  try {
    const answer = await publisher.rollback({ policy: connection.policy, why }, { deadlineMs: rollbackWithinMs });
    const forgotten = forget ? await forgetLessons(connection, answer.from) : [];
    output.value({ ...answer, ...(forget ? { forgotten } : {}) });
    output.line(`${answer.to} answers again after ${(answer.seconds * 1000).toFixed(0)} ms; ${answer.from} is burned.`);
    for (const text of forgotten) output.line(`Retired: “${text}”`);
    if (forget && forgotten.length === 0) output.line(`${answer.from} was being taught no lesson.`);
  } finally {
    publisher.close();
  }
}

/** An operator's word on each lesson that the version was being taught; what was learned before it stays. Out: their words. */
export async function forgetLessons(connection: Connection, version: string): Promise<string[]> {
  return withBroker(connection, async (broker, blobs) => {
    const batch = await batchOf(new FactReader(broker, blobs), connection.policy, version);
    const taught = new Set((batch?.samples ?? []).flatMap(({ lessons }) => lessons));
    const active = (batch?.lessons ?? []).filter(
      ({ id, state }) => state === Lesson_State.STATE_ACTIVE && taught.has(id),
    );
    const publisher = new FactPublisher(broker);
    for (const { id: lesson, scopeTenant: tenant, scopeUser: user } of active) {
      const said = {
        id: newId(),
        tenant,
        user,
        policy: connection.policy,
        action: LessonChanged_Action.ACTION_RETIRE,
        lesson,
      };
      await publisher.publish('lessonChanged', LessonChanged.fromPartial(said));
    }
    return active.map(({ text }) => text);
  });
}

async function batchOf(reader: FactReader, policy: string, version: string): Promise<BatchClosed | undefined> {
  for await (const { message } of reader.read(['batchClosed'], { filter: { batchClosed: { policy } } }))
    if (message.version === version) return message;
  return undefined;
}
