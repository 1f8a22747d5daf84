// A TCP connection that can be cut: what stands between a process and its broker. In: a port. Out: another one that leads there.
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

export interface Wire {
  readonly port: number;
  /** Ends every connection, and takes none until it is mended. */
  cut(): void;
  mend(): void;
  stop(): void;
}

export async function startWire(to: () => number): Promise<Wire> {
  const open = new Set<Socket>();
  let isCut = false;
  const server = createServer((near) => {
    if (isCut) return near.destroy();
    const far = connect(to(), '127.0.0.1');
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      open.add(one);
      one.pipe(other);
      // Whichever end breaks, the other one follows.
      one.on('error', () => other.destroy());
      one.on('close', () => {
        open.delete(one);
        other.destroy();
      });
    }
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const endAll = () => open.forEach((socket) => socket.destroy());
  return {
    port: (server.address() as AddressInfo).port,
    cut: () => {
      isCut = true;
      endAll();
    },
    mend: () => (isCut = false),
    stop: () => {
      server.close();
      endAll();
    },
  };
}
