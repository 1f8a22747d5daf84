// The deliveries that this process has in flight and has not settled, each kept alive until it is.
// In: messages as they are delivered. Out: one Entry for each fact, even when the broker delivers it again meanwhile.
import { nanos, type Msg } from 'nats';
import type { Broker } from '../broker/connect.js';
import { type MessagePlace, placeOf } from '../broker/pull.js';

const ackTimeoutMs = 2_000;

/** How a delivery left the hands of this process: settled for good, or given back to the broker. */
export type EntryEnd = 'settled' | 'given_back';

export class Entry {
  held = false;
  end: EntryEnd | undefined;

  constructor(
    private readonly broker: Broker,
    /** The newest delivery: answers go to it. */
    public message: Msg,
    readonly place: MessagePlace,
  ) {}

  giveBack(delayMs: number): void {
    this.answer(delayMs > 0 ? `-NAK ${JSON.stringify({ delay: nanos(delayMs) })}` : '-NAK');
  }

  /** Resolves when the broker has confirmed that the fact is settled. */
  async confirm(answer: '+ACK' | `+TERM ${string}`): Promise<void> {
    const { reply = '' } = this.message;
    await this.broker.ask({ subject: reply, data: answer, timeoutMs: ackTimeoutMs, doing: 'settle a fact' });
  }

  answer(text: string): void {
    // While the connection is down the client would pile answers up; the broker delivers again instead.
    if (this.broker.status() === 'up' && !this.broker.nc.isClosed()) this.message.respond(text);
  }
}

export class InFlight {
  private readonly byPosition = new Map<string, Entry>();
  private readonly waiting = new Set<() => void>();

  constructor(private readonly broker: Broker) {}

  /** Nothing when the fact is in flight already: its entry then answers the newer delivery. */
  take(message: Msg): Entry | undefined {
    const place = placeOf(message);
    const known = this.byPosition.get(keyOf(place));
    if (known !== undefined) {
      known.message = message;
      return undefined;
    }
    const entry = new Entry(this.broker, message, place);
    this.byPosition.set(keyOf(place), entry);
    return entry;
  }

  drop(entry: Entry, end: EntryEnd): void {
    entry.end = end;
    this.byPosition.delete(keyOf(entry.place));
    this.wake();
  }

  /** Resolves when something is settled or given back, or at `wake`. */
  nextDrop(): Promise<void> {
    return new Promise((resolve) => {
      this.waiting.add(resolve);
    });
  }

  wake(): void {
    for (const resolve of this.waiting) resolve();
    this.waiting.clear();
  }

  get size(): number {
    return this.byPosition.size;
  }

  keepAlive(): void {
    for (const entry of this.byPosition.values()) entry.answer('+WPI');
  }

  entries(): Entry[] {
    return [...this.byPosition.values()];
  }

  get held(): number {
    return this.entries().filter((entry) => entry.held).length;
  }

  /** Broker's time of the oldest fact that is being handled. */
  get oldestMs(): number | undefined {
    const times = this.entries()
      .filter((entry) => !entry.held)
      .map((entry) => entry.place.timeMs);
    return times.length === 0 ? undefined : Math.min(...times);
  }
}

function keyOf({ stream, sequence }: MessagePlace): string {
  return `${stream} ${sequence}`;
}
