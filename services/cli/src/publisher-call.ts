// A command's call to the publisher that leads, by the leases of all.
import { isBacktalkError, watchLeases } from '@backtalk/kit';
import type { GrpcClient } from '@backtalk/kit/grpc';
import { PublisherControlServiceDefinition } from '@backtalk/proto/control';
import { withBroker, type Connection } from './connection.js';
import { cliErrors } from './errors.js';

type Publisher = GrpcClient<typeof PublisherControlServiceDefinition>;

export async function askPublisher<T>(connection: Connection, ask: (publisher: Publisher) => Promise<T>): Promise<T> {
  const addresses = await withBroker(connection, async (broker) => {
    const view = await watchLeases(broker, 'publisher');
    try {
      return view.current().flatMap(({ grpcAddress }) => (grpcAddress === '' ? [] : [grpcAddress]));
    } finally {
      view.stop();
    }
  });
  let refusal = cliErrors.unreachable({ what: 'The publisher', url: connection.natsUrl });
  for (const address of addresses) {
    try {
      return await askAt(address, connection, ask);
    } catch (error) {
      // One that waits to lead has done nothing: another may lead.
      if (!isBacktalkError(error, 'not_leading')) throw error;
      refusal = error;
    }
  }
  throw refusal;
}

async function askAt<T>(address: string, { wire }: Connection, ask: (publisher: Publisher) => Promise<T>): Promise<T> {
  // No other command calls a service, and loading this takes as long as all that most of them need.
  const { grpcClient } = await import('@backtalk/kit/grpc');
  const publisher = grpcClient(PublisherControlServiceDefinition, address, { caller: 'cli', wire });
  try {
    return await ask(publisher);
  } finally {
    publisher.close();
  }
}
