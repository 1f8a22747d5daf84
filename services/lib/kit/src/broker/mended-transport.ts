// Three repairs of the transport of `nats` 2.29.3. A broker that stands still for longer than a connection may take leaves
// it with sockets that belong to no connection: when the broker goes on, they answer, it closes them, and each close breaks the healthy
// connection again. On another version of the library nothing is repaired and nothing starts: its inside is not known.
// The test "is whole again after a broker that stood still …" in connect.test.ts fails without the repairs.
import { createRequire } from 'node:module';
import transports, { type NodeTransport } from 'nats/lib/src/node_transport.js';
import { isJsonObject } from '../json/json-object.js';
import { brokerErrors } from './errors.js';

/** Connections that were given up before they stood. */
const givenUp = new WeakSet<NodeTransport>();
let isMended = false;

const mendedVersion = '2.29.3';

/** Throws `broker_client_unknown` on any other version of the library than the pinned one. */
export function mendTransport(version = installedVersion()): void {
  if (version !== mendedVersion) throw brokerErrors.brokerClientUnknown({ version, known: mendedVersion });
  if (isMended) return;
  isMended = true;
  const prototype = transports.NodeTransport.prototype;
  const original = { connect: prototype.connect, close: prototype.close };
  /** One that was given up while it was made is taken down, and not used. */
  prototype.connect = async function connect(this: NodeTransport, place, options) {
    await original.connect.call(this, place, options);
    if (!givenUp.has(this)) return;
    this.socket.removeAllListeners();
    this.socket.destroy();
    this.done = true;
    throw brokerErrors.brokerUnavailable({ doing: 'connect' });
  };
  /** The original does nothing with a socket that is not connected yet, which stays open. */
  prototype.close = function close(this: NodeTransport, error) {
    if (!this.connected) {
      givenUp.add(this);
      // Undefined until the first packet has come back.
      (this.socket as NodeTransport['socket'] | undefined)?.destroy();
    }
    return original.close.call(this, error);
  };
  /** The original waits until everything is sent, which a broker that stands still does not take. */
  prototype.disconnect = function disconnect(this: NodeTransport) {
    // It is given up: what its close fails with matters to no caller.
    this.close(brokerErrors.brokerUnavailable({ doing: 'ping' })).catch(() => undefined);
  };
}

function installedVersion(): string {
  const manifest: unknown = createRequire(import.meta.url)('nats/package.json');
  return isJsonObject(manifest) ? String(manifest['version']) : 'without a version';
}
