// Under which addresses a part tells others to find it. In: what it listens on, and the address that it is told to advertise.
// Out: the two addresses of its lease. Pure.
import type { Lease } from '@backtalk/proto/weights';

interface Listening {
  readonly grpcAddress: { readonly host: string };
  readonly healthAddress: { readonly host: string };
  /** `<host>:<port>`; empty where others find the part under the address that it listens on. */
  readonly grpcAdvertised: string;
}

/** A part that listens on every address is found, health and all, under the host that it advertises. */
export function leaseAddresses(
  { grpcAddress, healthAddress, grpcAdvertised }: Listening,
  ports: { readonly grpc: number; readonly health: number },
): Pick<Lease, 'grpcAddress' | 'healthAddress'> {
  if (grpcAdvertised === '') {
    return {
      grpcAddress: `${grpcAddress.host}:${ports.grpc}`,
      healthAddress: `${healthAddress.host}:${ports.health}`,
    };
  }
  const host = grpcAdvertised.slice(0, grpcAdvertised.lastIndexOf(':'));
  return { grpcAddress: grpcAdvertised, healthAddress: `${host}:${ports.health}` };
}
