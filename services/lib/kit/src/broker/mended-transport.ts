// Three repairs of the transport of `nats` 2.29.3, which a broker that stands still for longer than a connection may take
// leaves with sockets that nobody owns: when it goes on, they answer, are closed by the broker, and each close breaks the
// healthy connection anew, for ever. In: nothing. Out: the library's own class, mended once.
import transports, { type NodeTransport } from 'nats/lib/src/node_transport.js';
import { brokerErrors } from './errors.js';

/** Connections that were given up before they stood. */
const givenUp = new WeakSet<NodeTransport>();
let isMended = false;

export function mendTransport(): void {
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
    this.close(brokerErrors.brokerUnavailable({ doing: 'ping' })).catch(() => undefined);
  };
}
