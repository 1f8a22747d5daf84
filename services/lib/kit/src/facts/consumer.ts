// Consumes facts for one service. In: a handler for each fact. Out: every fact handled at least once, bounded in number,
// kept alive while it is worked on, settled only when its effect is stored. Different facts keep no order among them.
import type { Msg } from 'nats';
import type { BlobStore } from '../blobs/blob-store.js';
import type { Broker } from '../broker/connect.js';
import { placeOf } from '../broker/pull.js';
import { readStream } from '../broker/read-stream.js';
import { brokerError } from '../broker/translate.js';
import { asBacktalkError, type BacktalkError } from '../errors/backtalk-error.js';
import type { Logger } from '../telemetry/logger.js';
import type { Metrics } from '../telemetry/metrics.js';
import { type BackOff, type Clock, systemClock } from '../time/clock.js';
import { catalogue, type FactIds, type FactName } from '../topology/catalogue.js';
import { replayStream } from '../topology/streams.js';
import { durableOf, subjectFilter } from '../topology/subjects.js';
import { pointerIn } from './dead-letters.js';
import type { FactHandler } from './delivery.js';
import { factErrors } from './errors.js';
import { FactFlow, factMetrics, type FactMetrics, type Flow, type FlowOptions } from './flow.js';
import { fromWire, type StoredFact } from './stored-fact.js';

export interface ConsumeOptions<F extends FactName> {
  readonly broker: Broker;
  readonly service: string;
  readonly facts: readonly F[];
  readonly handlers: { readonly [N in F]: FactHandler<N> };
  /** Handlers at work at the same time, for each fact. */
  readonly concurrency: number;
  /** After this long without a sign of life from a process, its facts go to another. */
  readonly ackWaitMs: number;
  /** Tries before a fact becomes a dead letter. */
  readonly maxDeliver?: number;
  /** How many facts handlers may hold at the same time, for each fact. */
  readonly maxHeld?: number;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly blobs?: BlobStore;
  /** Names a durable consumer of its own, beside the service's plain one. */
  readonly durableSuffix?: string;
  /** Narrows facts to some ids, such as one policy. */
  readonly filter?: { readonly [N in F]?: FactIds<N> };
  readonly backOff?: BackOff;
  readonly clock?: Clock;
  /** Called with errors that should end the service. Without it they are thrown uncaught, which ends it. */
  readonly onFatal?: (error: BacktalkError) => void;
}

export interface FactPosition {
  /** Not yet delivered. */
  readonly pending: number;
  /** Delivered and not settled, to all instances. */
  readonly unsettled: number;
  /** Everything up to this stream sequence is settled. */
  readonly settledSequence: number;
}

export interface FactConsumer<F extends FactName> {
  start(): Promise<void>;
  /** Lets handlers end, then gives back what is unsettled or held. */
  stop(deadlineMs?: number): Promise<void>;
  position(name: F): Promise<FactPosition>;
}

const measureEveryMs = 5_000;

export function consumeFacts<F extends FactName>(options: ConsumeOptions<F>): FactConsumer<F> {
  return new Consumer(options);
}

class Consumer<F extends FactName> implements FactConsumer<F> {
  private readonly clock: Clock;
  private readonly numbers: FactMetrics;
  private readonly flows: readonly { readonly name: F; readonly flows: readonly Flow[] }[];
  private cancelMeasure: () => void = () => undefined;

  constructor(private readonly options: ConsumeOptions<F>) {
    this.clock = options.clock ?? systemClock;
    this.numbers = factMetrics(options.metrics);
    // From 0, or the first fact that is given up would be no increase.
    for (const fact of options.facts) this.numbers.handled.inc({ fact, outcome: 'dead' }, 0);
    this.flows = options.facts.map((name) => ({
      name,
      flows: [new FactFlow(this.live(name)), new FactFlow(this.replays(name))],
    }));
  }

  async start(): Promise<void> {
    await Promise.all(this.flows.flatMap(({ flows }) => flows.map((flow) => flow.start())));
    this.measureLater();
  }

  async stop(deadlineMs = 10_000): Promise<void> {
    this.cancelMeasure();
    await Promise.all(this.flows.flatMap(({ flows }) => flows.map((flow) => flow.stop(deadlineMs))));
    const { nc } = this.options.broker;
    // What was given back is on its way when this resolves; a broker that is down delivers again by itself.
    if (this.options.broker.status() === 'up' && !nc.isClosed())
      await nc.flush().catch((error: unknown) => this.options.logger.debug('facts_not_flushed', { error }));
  }

  async position(name: F): Promise<FactPosition> {
    const { stream } = catalogue[name];
    try {
      const info = await this.options.broker.jsm.consumers.info(stream, this.durable(name));
      return {
        pending: info.num_pending,
        unsettled: info.num_ack_pending,
        settledSequence: info.ack_floor.stream_seq,
      };
    } catch (error) {
      throw brokerError(error, { doing: `look at the position of ${name}`, stream });
    }
  }

  /** Facts as the log delivers them. */
  private live<N extends F>(name: N): FlowOptions<N> {
    const { stream } = catalogue[name];
    const filter = subjectFilter<N>(name, this.options.filter?.[name]);
    const locate = (message: Msg) => ({ stream, subject: message.subject, sequence: placeOf(message).sequence });
    const open = (message: Msg) => {
      const { sequence, timeMs } = placeOf(message);
      const { subject, headers, data } = message;
      return fromWire(name, { subject, headers, data, sequence, timeMs }, this.options.blobs);
    };
    return { ...this.shared(name), stream, filter, locate, open };
  }

  /** Dead letters that an operator gives back: each points to a fact in the log. */
  private replays<N extends F>(name: N): FlowOptions<N> {
    const shared = this.shared(name);
    const filter = `backtalk.replay.${this.options.service}.${shared.durable}`;
    const open = (message: Msg) => this.original(name, message);
    return { ...shared, stream: replayStream, filter, open, locate: (message) => pointerIn(message.headers) };
  }

  private async original<N extends F>(name: N, message: Msg): Promise<StoredFact<N>> {
    const { broker, blobs } = this.options;
    const { stream, subject, sequence } = pointerIn(message.headers);
    const reading = { broker, stream, filter: subject, from: sequence, until: sequence };
    for await (const stored of readStream(reading)) return fromWire(name, stored, blobs);
    throw factErrors.deadLetterGone({ sequence });
  }

  private shared<N extends F>(name: N): Omit<FlowOptions<N>, 'stream' | 'filter' | 'open' | 'locate'> {
    const { broker, service, handlers, concurrency, ackWaitMs, maxDeliver, maxHeld, backOff, logger } = this.options;
    return {
      broker,
      service,
      name,
      durable: this.durable(name),
      handler: handlers[name],
      concurrency,
      ackWaitMs,
      maxDeliver: maxDeliver ?? 8,
      maxHeld: maxHeld ?? 0,
      backOff: backOff ?? { firstMs: 500, mostMs: 30_000 },
      logger,
      metrics: this.numbers,
      clock: this.clock,
      onFatal: this.options.onFatal ?? endTheService,
    };
  }

  private durable(name: F): string {
    return durableOf(this.options.service, name, this.options.durableSuffix);
  }

  private measureLater(): void {
    this.cancelMeasure = this.clock.timer(measureEveryMs, () => {
      for (const { name, flows } of this.flows) {
        this.measure(name, flows).catch((error: unknown) => {
          this.options.logger.debug('facts_not_measured', { fact: name, error: asBacktalkError(error) });
        });
      }
      this.measureLater();
    });
  }

  private async measure(name: F, flows: readonly Flow[]): Promise<void> {
    const labels = { fact: name };
    const inFlight = flows.map((flow) => flow.inFlight);
    const held = inFlight.reduce((sum, facts) => sum + facts.held, 0);
    const all = inFlight.reduce((sum, facts) => sum + facts.size, 0);
    const oldestMs = Math.min(...inFlight.map((facts) => facts.oldestMs ?? Number.POSITIVE_INFINITY));
    this.numbers.held.set(labels, held);
    this.numbers.inFlight.set(labels, all - held);
    this.numbers.oldestAge.set(labels, Number.isFinite(oldestMs) ? (this.clock.now() - oldestMs) / 1000 : 0);
    if (this.options.broker.status() === 'down') return;
    const { pending, unsettled } = await this.position(name);
    this.numbers.pending.set(labels, pending + unsettled);
  }
}

/** It is not caught, so the process ends with the error in its log. */
function endTheService(error: BacktalkError): void {
  queueMicrotask(() => {
    throw error;
  });
}
