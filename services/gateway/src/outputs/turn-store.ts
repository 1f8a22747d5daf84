// Stores finished turns before their clients see the final frame.
//
// In: a turn's facts: the first when the request arrives, the others when the answer is complete. Out: where they are
// stored. The broker has `storeWaitMs`; then they go to the spool. After that the broker is left alone, but for one try
// a second, until it takes something again. It never says that a turn is stored before it is.
import {
  asBacktalkError,
  within,
  type BacktalkError,
  type Clock,
  type FactMessage,
  type FactPublisher,
  type Trace,
} from '@backtalk/kit';
import type { TurnOpened } from '@backtalk/proto/facts';
import { gatewayErrors } from '../errors.js';
import type { GatewayEvents, StoredWhere } from '../events.js';
import { Breaker } from '../domain/breaker.js';
import type { SpooledFact } from '../domain/spool-record.js';
import type { Spool } from './spool.js';
import { storable, type Storable } from './storable.js';

interface TurnStoreOptions {
  readonly publisher: FactPublisher;
  readonly spool: Spool;
  readonly clock: Clock;
  readonly events: GatewayEvents;
  readonly storeWaitMs: number;
  /** False: turns that cannot be stored anywhere are served all the same. */
  readonly required: boolean;
  /** Called when something went to the spool. */
  readonly onSpooled: () => void;
}

/** A turn whose request is known and whose answer is not. */
export interface OpenTurn {
  readonly trace: Trace;
  readonly opened: Storable;
  /** Resolves to whether the broker has it. */
  readonly openedStored: Promise<boolean>;
}

/** The most that one turn adds to its request's size when it is stored; a guess that only admission uses. */
const answerBytesGuess = 256 * 1024;
const openedWaitMs = 5_000;
/** The first fact is not waited for yet; most of the cost of a packet is the packet. */
const openedBatchMs = 5;
const retryAfterSeconds = 2;

export class TurnStore {
  private readonly breaker = new Breaker(1, 1_000);

  constructor(private readonly options: TurnStoreOptions) {}

  /** False while no turn could be stored anywhere and none may go without. */
  get canStore(): boolean {
    return !this.options.required || !this.breaker.isOpen || this.options.spool.takes(answerBytesGuess);
  }

  /** True while turns lie in the spool that the log does not have. */
  get hasBacklog(): boolean {
    return !this.options.spool.isEmpty;
  }

  /** Throws `capture_unavailable` when the turn of such a request could not be stored, so that none is begun in vain. */
  admit(requestBytes: number): void {
    if (!this.options.required || !this.breaker.isOpen) return;
    if (!this.options.spool.takes(requestBytes + answerBytesGuess))
      throw gatewayErrors.captureUnavailable({ retryAfterSeconds });
  }

  fact<N extends SpooledFact>(name: N, message: FactMessage<N>, trace: Trace): Storable {
    return storable(this.options.publisher, name, message, trace);
  }

  open(message: TurnOpened, trace: Trace): OpenTurn {
    const opened = this.fact('turnOpened', message, trace);
    const mayTry = this.breaker.permits(this.options.clock.now());
    return {
      trace,
      opened,
      openedStored: mayTry ? this.publish([opened], openedWaitMs, openedBatchMs) : Promise.resolve(false),
    };
  }

  /** Stores what is left of the turn. Throws `capture_unavailable` when capture is required and nothing takes it. */
  async complete(turn: OpenTurn, rest: readonly Storable[]): Promise<StoredWhere> {
    return this.storeAll([turn.opened, ...rest], () => this.publishAll(turn, rest));
  }

  /** Stores one fact by itself. */
  async keep(fact: Storable): Promise<StoredWhere> {
    return this.storeAll([fact], () => this.publish([fact], this.options.storeWaitMs));
  }

  private async storeAll(facts: readonly Storable[], publish: () => Promise<boolean>): Promise<StoredWhere> {
    const { clock, spool, storeWaitMs, required, onSpooled } = this.options;
    if (this.breaker.permits(clock.now())) {
      const stored = await within(clock, storeWaitMs, publish());
      if (stored === undefined) this.brokerFailed(gatewayErrors.logUnavailable());
      if (stored === true) return 'broker';
    }
    try {
      await spool.append(facts.map((fact) => fact.record()));
      onSpooled();
      return 'spool';
    } catch (cause) {
      if (!required) return 'nowhere';
      throw gatewayErrors.captureUnavailable({ retryAfterSeconds }, cause);
    }
  }

  /** The broker took something, or says that it is back. */
  brokerIsBack(): void {
    if (!this.breaker.isOpen) return;
    this.breaker.succeeded();
    this.options.events.breakerClosed();
  }

  private async publishAll(turn: OpenTurn, rest: readonly Storable[]): Promise<boolean> {
    const { storeWaitMs } = this.options;
    const storing = this.publish(rest, storeWaitMs);
    const opened = (await turn.openedStored) || (await this.publish([turn.opened], storeWaitMs));
    return (await storing) && opened;
  }

  private async publish(facts: readonly Storable[], timeoutMs: number, batchMs?: number): Promise<boolean> {
    try {
      await Promise.all(facts.map((fact) => fact.publish(timeoutMs, batchMs)));
      this.brokerIsBack();
      return true;
    } catch (error) {
      this.brokerFailed(asBacktalkError(error));
      return false;
    }
  }

  private brokerFailed(error: BacktalkError): void {
    const wasOpen = this.breaker.isOpen;
    this.breaker.failed(this.options.clock.now());
    if (!wasOpen) this.options.events.breakerOpened(error);
  }
}
