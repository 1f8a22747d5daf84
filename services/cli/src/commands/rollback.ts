// `rollback`: the version before this one answers again, at once; the one rolled back is burned.
import { grpcClient, watchLeases } from '@backtalk/kit';
import { PublisherControlServiceDefinition } from '@backtalk/proto/control';
import { withBroker } from '../connection.js';
import type { CommandContext } from '../shell.js';
import { cliErrors } from '../errors.js';

const rollbackWithinMs = 30_000;

export async function rollback({ connection, output }: CommandContext, why: string): Promise<void> {
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
    output.value(answer);
    output.line(`${answer.to} answers again after ${(answer.seconds * 1000).toFixed(0)} ms; ${answer.from} is burned.`);
  } finally {
    publisher.close();
  }
}
