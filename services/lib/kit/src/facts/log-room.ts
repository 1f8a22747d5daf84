// The bound of the log of turns, which counts what lies beside it: payloads that are larger than a fact take their part of it. In: the
// bytes of what is about to be stored. Out: it returns, or throws `stream_full` as the broker does. The broker bounds the log itself
// exactly; this sum is at most `looksEveryMs` old, and what was admitted since is added to it.
import type { Broker } from '../broker/connect.js';
import { brokerErrors } from '../broker/errors.js';
import { brokerError } from '../broker/translate.js';
import { asBacktalkError } from '../errors/backtalk-error.js';
import { type Clock, systemClock } from '../time/clock.js';
import { boundedStream, namedPayloadBytes } from './payloads.js';

const looksEveryMs = 10_000;

interface Filling {
  readonly atMs: number;
  readonly logBytes: number;
  /** Absent where the log has no bound. */
  readonly bytesMax: number | undefined;
  payloadBytes: number;
}

export class LogRoom {
  private known: Filling | undefined;
  private looking: Promise<Filling> | undefined;

  constructor(
    private readonly broker: Broker,
    private readonly clock: Clock = systemClock,
  ) {}

  /** Of a payload that is about to be put. */
  async admitPayload(bytes: number): Promise<void> {
    const known = await this.fresh();
    if (isFull(known, bytes)) throw brokerErrors.streamFull({ stream: boundedStream });
    known.payloadBytes += bytes;
  }

  /** Of a fact that lies in the log itself. It waits for a look only where the last one found no room. */
  async admitFact(bytes: number): Promise<void> {
    if (this.known === undefined || !takesRoom(this.known, bytes)) {
      this.lookBeside();
      return;
    }
    if (takesRoom(await this.fresh(), bytes)) throw brokerErrors.streamFull({ stream: boundedStream });
  }

  private lookBeside(): void {
    this.fresh().catch((error: unknown) => {
      this.broker.logger.debug('log_room_unknown', { reason: asBacktalkError(error).code });
    });
  }

  private async fresh(): Promise<Filling> {
    // Either way: a clock that is set back would keep an old sum for as long.
    if (this.known !== undefined && Math.abs(this.clock.now() - this.known.atMs) < looksEveryMs) return this.known;
    this.looking ??= this.look().finally(() => {
      this.looking = undefined;
    });
    return (this.known = await this.looking);
  }

  private async look(): Promise<Filling> {
    const atMs = this.clock.now();
    try {
      const { state, config } = await this.broker.jsm.streams.info(boundedStream);
      const bytesMax = config.max_bytes > 0 ? config.max_bytes : undefined;
      return { atMs, logBytes: state.bytes, bytesMax, payloadBytes: await namedPayloadBytes(this.broker) };
    } catch (error) {
      throw brokerError(error, { doing: 'look for room in the log', stream: boundedStream });
    }
  }
}

function isFull({ logBytes, payloadBytes, bytesMax = Infinity }: Filling, bytes: number): boolean {
  return logBytes + payloadBytes + bytes > bytesMax;
}

/** Where nothing lies beside the log, the broker knows best. */
function takesRoom(known: Filling, bytes: number): boolean {
  return known.payloadBytes > 0 && isFull(known, bytes);
}
