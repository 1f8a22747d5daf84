// Headers of a message that is about to be sent. In: names that are written as they are, each once. Out: their bytes. The
// client's own headers look every name up several times, in every spelling, which costs more than the rest of a publish.
import { MsgHdrsImpl } from 'nats';

export class PlainHeaders extends MsgHdrsImpl {
  override set(name: string, value: string): void {
    this.headers.set(name, [MsgHdrsImpl.validHeaderValue(value)]);
  }

  override encode(): Uint8Array {
    if (this.headers.size === 0) return new Uint8Array(0);
    let text = 'NATS/1.0\r\n';
    for (const [name, [value = '']] of this.headers) text += `${name}: ${value}\r\n`;
    // Small buffers share one block of memory; the client's encoder asks for a block of its own for each.
    return Buffer.from(`${text}\r\n`);
  }
}
