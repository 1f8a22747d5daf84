// gRPC clients by address, made when first needed and closed when their owner's lease is gone.
import { type WireSecurity } from '@backtalk/kit';
import { grpcClient, type GrpcClient } from '@backtalk/kit/grpc';

type Definition = Parameters<typeof grpcClient>[0];

export class Peers<D extends Definition> {
  private readonly clients = new Map<string, GrpcClient<D>>();

  constructor(
    private readonly definition: D,
    private readonly wire?: WireSecurity,
  ) {}

  at(address: string): GrpcClient<D> {
    const known = this.clients.get(address);
    if (known !== undefined) return known;
    const client = grpcClient(this.definition, address, {
      caller: 'publisher',
      ...(this.wire === undefined ? {} : { wire: this.wire }),
    });
    this.clients.set(address, client);
    return client;
  }

  /** Closes all but these. */
  keep(addresses: readonly string[]): void {
    for (const [address, client] of this.clients) {
      if (addresses.includes(address)) continue;
      this.clients.delete(address);
      client.close();
    }
  }
}
