// One fact's way through one service: delivered, handled, settled. What becomes of a failure follows from the error.
// In: a durable consumer's messages and a handler. Out: acks, retries, dead letters. It never drops a fact silently.
import { AckPolicy, DeliverPolicy, nanos, type Msg } from 'nats';
import type { Broker } from '../broker/connect.js';
import { createConsumer, Pull } from '../broker/pull.js';
import { asBacktalkError, type BacktalkError } from '../errors/backtalk-error.js';
import type { Logger } from '../telemetry/logger.js';
import type { Metrics } from '../telemetry/metrics.js';
import { idsOf, inSpan, isTracing } from '../telemetry/spans.js';
import { type BackOff, backOffMs, type Clock, within } from '../time/clock.js';
import type { FactName } from '../topology/catalogue.js';
import { writeDeadLetter } from './dead-letters.js';
import { type Delivery, type FactHandler, verdictOn } from './delivery.js';
import { factErrors } from './errors.js';
import { type Entry, type EntryEnd, InFlight } from './in-flight.js';
import { type StoredFact, traceHeader } from './stored-fact.js';
import { Suspects } from './suspects.js';

/** What all flows of a consumer share. */
export interface FlowSettings {
  readonly broker: Broker;
  readonly service: string;
  /** Handlers at work at the same time, for each fact. */
  readonly concurrency: number;
  /** After this long without a sign of life from a process, its facts go to another. */
  readonly ackWaitMs: number;
  /** Tries before a fact becomes a dead letter. */
  readonly maxDeliver: number;
  /** How many facts handlers may hold at the same time, for each fact. */
  readonly maxHeld: number;
  readonly backOff: BackOff;
  readonly logger: Logger;
  readonly clock: Clock;
  /** Called with errors that should end the service. */
  readonly onFatal: (error: BacktalkError) => void;
}

/** Where one flow's facts come from and who handles them. */
export interface FlowRoute<N extends FactName> {
  readonly name: N;
  readonly stream: string;
  readonly durable: string;
  readonly filter: string;
  readonly open: (message: Msg) => Promise<StoredFact<N>>;
  /** Where the fact is in the log: the message's own place, or the one a replay points to. */
  readonly locate: (message: Msg) => { stream: string; subject: string; sequence: number };
  readonly handler: FactHandler<N>;
}

/** Un-acked messages of all instances of a service together; each instance takes no more than it has slots for. */
const ackPendingMax = 1_000;
const ackTries = 5;
/** Facts that another instance settles are never heard of again here. */
const failedMax = 10_000;
/** What waits is tried this often at least, however long it has waited: it goes on soon after what it needs is back. */
const waitMostMs = 4_000;

export class FactFlow<N extends FactName = FactName> {
  readonly inFlight: InFlight;
  private readonly pull: Pull;
  private readonly suspects: Suspects;
  private readonly running = new Set<Promise<void>>();
  /** Failed tries here, by the message's sequence. Deliveries say nothing against a fact: restarts and releases count as ones, too. */
  private readonly failed = new Map<number, number>();
  private readonly stopping = new AbortController();
  private readonly aborting = new AbortController();
  private cancelKeepAlive: () => void = () => undefined;

  constructor(
    private readonly settings: FlowSettings,
    private readonly route: FlowRoute<N>,
    private readonly metrics: FactMetrics,
  ) {
    const { broker, concurrency: slots, clock, ackWaitMs, maxHeld, onFatal } = settings;
    this.inFlight = new InFlight(broker);
    this.suspects = new Suspects(broker, `${settings.service}.${route.stream}.${route.durable}`);
    this.pull = new Pull({
      broker,
      stream: route.stream,
      slots,
      clock,
      ensure: async () => {
        const { stream, durable, filter } = route;
        const { name } = await createConsumer(broker, stream, {
          name: durable,
          durable_name: durable,
          filter_subject: filter,
          deliver_policy: DeliverPolicy.All,
          ack_policy: AckPolicy.Explicit,
          ack_wait: nanos(ackWaitMs),
          max_ack_pending: ackPendingMax + maxHeld,
          max_deliver: -1,
        });
        return name;
      },
      onMessage: (message) => this.take(message),
      onFatal,
    });
  }

  async start(): Promise<void> {
    this.keepAliveLater();
    await this.pull.start();
  }

  /** Takes nothing more, lets handlers end until the deadline, then gives back what is unsettled. */
  async stop(deadlineMs: number): Promise<void> {
    this.pull.stop();
    this.stopping.abort(factErrors.factsStopped());
    this.inFlight.wake();
    const idle = Promise.allSettled(this.running).then(() => true);
    if ((await within(this.settings.clock, deadlineMs, idle)) === undefined) {
      this.aborting.abort(factErrors.factsStopped());
      await within(this.settings.clock, 1_000, idle);
    }
    this.cancelKeepAlive();
    for (const entry of this.inFlight.entries()) this.giveBack(entry, 0);
  }

  /** Three times in each ack wait, so that one lost message does not matter. */
  private keepAliveLater(): void {
    this.cancelKeepAlive = this.settings.clock.timer(this.settings.ackWaitMs / 3, () => {
      this.inFlight.keepAlive();
      this.keepAliveLater();
    });
  }

  private take(message: Msg): void {
    const entry = this.inFlight.take(message);
    if (entry === undefined) {
      this.pull.done();
      return;
    }
    const run = this.handle(entry)
      .catch((error: unknown) => {
        this.settings.onFatal(asBacktalkError(error));
      })
      .finally(() => {
        this.running.delete(run);
        this.pull.done();
      });
    this.running.add(run);
  }

  private async handle(entry: Entry): Promise<void> {
    const { clock } = this.settings;
    const { name } = this.route;
    for (let waits = 1; ; waits += 1) {
      const started = clock.now();
      const failure = await this.try(entry);
      this.metrics.seconds.observe({ fact: name }, (clock.now() - started) / 1000);
      if (failure === undefined) return;
      if (!(await this.afterFailure(entry, failure, waits))) return;
      if (this.stopping.signal.aborted) return this.giveBack(entry, 0);
    }
  }

  /** Nothing when the handler has done its part. */
  private async try(entry: Entry): Promise<BacktalkError | undefined> {
    try {
      await this.suspects.run(entry.place, () => this.handOver(entry));
    } catch (error) {
      entry.held = false;
      return asBacktalkError(error);
    }
    if (entry.end !== undefined) return undefined;
    if (!entry.held) {
      await this.settle(entry, '+ACK', 'handled');
      return undefined;
    }
    this.count('held');
    // A held fact gives its slot to the next one, until as many are held as may be.
    while (entry.end === undefined && this.inFlight.held > this.settings.maxHeld && !this.stopping.signal.aborted) {
      await this.inFlight.nextDrop();
    }
    return undefined;
  }

  private async handOver(entry: Entry): Promise<void> {
    const { open, handler, name } = this.route;
    const fact = await open(entry.message);
    entry.held = false;
    const delivery = this.deliveryOf(entry);
    if (!isTracing()) return handler(fact, delivery);
    const attributes = { ...idsOf(fact.message), 'backtalk.deliveries': delivery.deliveries };
    // What follows from a fact follows from its being handled here.
    await inSpan(`handle ${name}`, { kind: 'consumer', parent: fact.trace, attributes }, (trace) =>
      handler(Object.assign({}, fact, { trace }), delivery),
    );
  }

  private deliveryOf(entry: Entry): Delivery {
    const { deliveries } = entry.place;
    return {
      deliveries,
      redelivered: deliveries > 1,
      signal: this.aborting.signal,
      hold: () => {
        entry.held = true;
        return {
          ack: async () => {
            if (entry.end === 'given_back') throw factErrors.factsStopped();
            if (entry.end === 'settled') return;
            await entry.confirm('+ACK');
            this.finish(entry, 'handled');
          },
          release: (delayMs = 0) => {
            if (entry.end === undefined) this.giveBack(entry, delayMs);
          },
        };
      },
    };
  }

  /** True when the handler is to be called again at once. */
  private async afterFailure(entry: Entry, error: BacktalkError, waits: number): Promise<boolean> {
    if (entry.end !== undefined) return false;
    if (this.stopping.signal.aborted) {
      this.giveBack(entry, 0);
      return false;
    }
    const { maxDeliver, maxHeld, backOff, logger } = this.settings;
    const { name } = this.route;
    const { sequence } = entry.place;
    const tries = (this.failed.get(sequence) ?? 0) + 1;
    const verdict = verdictOn(error, tries, maxDeliver);
    if (verdict.kind !== 'wait') this.remember(sequence, tries);
    logger.warn('fact_failed', { fact: name, verdict: verdict.kind, tries, sequence, error });
    switch (verdict.kind) {
      case 'wait':
        this.count('waited');
        await this.pause(backOffMs(waits, { ...backOff, mostMs: Math.min(backOff.mostMs, waitMostMs) }));
        return true;
      case 'retry':
        if (maxHeld === 0) {
          this.giveBack(entry, backOffMs(tries, backOff), 'retried');
          return false;
        }
        this.count('retried');
        await this.pause(backOffMs(tries, backOff));
        return true;
      case 'dead':
        await this.bury(entry, error);
        return false;
      case 'fatal':
        this.giveBack(entry, 0);
        this.settings.onFatal(error);
        return false;
    }
  }

  /** The dead letter is stored before the fact is ended; while it cannot be, the fact stays in flight. */
  private async bury(entry: Entry, error: BacktalkError): Promise<void> {
    const { broker, service, backOff, logger } = this.settings;
    const { durable, name, locate } = this.route;
    const fact = locate(entry.message);
    const { deliveries, stream, sequence } = entry.place;
    const traceparent = entry.message.headers?.get(traceHeader) ?? '';
    const letter = { service, durable, deliveries, fact, reason: error.code, traceparent };
    for (let tries = 1; !this.stopping.signal.aborted; tries += 1) {
      try {
        await writeDeadLetter(broker, letter, `${durable}-${stream}-${sequence}`);
        logger.error('fact_dead', { fact: name, reason: error.code, deliveries, sequence: fact.sequence, error });
        return await this.settle(entry, `+TERM ${error.code}`, 'dead');
      } catch (failure) {
        logger.warn('dead_letter_refused', { fact: name, error: asBacktalkError(failure) });
      }
      await this.pause(backOffMs(tries, backOff));
    }
    this.giveBack(entry, 0);
  }

  /** The effect is there: the ack is tried again over a lost connection, so that the handler need not be. */
  private async settle(entry: Entry, answer: '+ACK' | `+TERM ${string}`, outcome: Outcome): Promise<void> {
    const { logger, backOff } = this.settings;
    const { name } = this.route;
    for (let tries = 1; ; tries += 1) {
      try {
        await entry.confirm(answer);
        break;
      } catch (error) {
        logger.warn('fact_ack_unconfirmed', {
          fact: name,
          sequence: entry.place.sequence,
          error: asBacktalkError(error),
        });
        if (this.stopping.signal.aborted) break;
        if (tries >= ackTries && this.settings.broker.status() === 'up') break;
      }
      await this.pause(backOffMs(tries, backOff));
    }
    this.finish(entry, outcome);
  }

  private remember(sequence: number, tries: number): void {
    this.failed.set(sequence, tries);
    const [oldest] = this.failed.keys();
    if (this.failed.size > failedMax && oldest !== undefined) this.failed.delete(oldest);
  }

  private giveBack(entry: Entry, delayMs: number, outcome: Outcome = 'given_back'): void {
    entry.giveBack(delayMs);
    this.finish(entry, outcome, 'given_back');
  }

  private finish(entry: Entry, outcome: Outcome, end: EntryEnd = 'settled'): void {
    if (entry.end !== undefined) return;
    this.inFlight.drop(entry, end);
    if (end === 'settled') this.failed.delete(entry.place.sequence);
    this.count(outcome);
  }

  private count(outcome: Outcome): void {
    this.metrics.handled.inc({ fact: this.route.name, outcome });
  }

  /** Ends early when the consumer stops. */
  private async pause(ms: number): Promise<void> {
    // Aborted: it goes on at once, and looks whether it is stopping.
    await this.settings.clock.sleep(ms, this.stopping.signal).catch(() => undefined);
  }
}

type Outcome = 'handled' | 'held' | 'retried' | 'waited' | 'dead' | 'given_back';

export type FactMetrics = ReturnType<typeof factMetrics>;

/** Services with a consumer for each policy have it as a label. */
const byPolicy = ['fact', 'policy'];

export function factMetrics(metrics: Metrics) {
  return {
    handled: metrics.counter('facts_handled_total', 'Deliveries of facts, by what became of them.', [
      'fact',
      'outcome',
    ]),
    seconds: metrics.histogram(
      'facts_handling_seconds',
      'Time a handler took for one fact.',
      [0.001, 0.005, 0.02, 0.1, 0.5, 2, 10, 60],
      ['fact'],
    ),
    pending: metrics.gauge('facts_pending', 'Facts in the log that this service has not settled.', byPolicy),
    inFlight: metrics.gauge('facts_in_hand', 'Facts that are being handled.', byPolicy),
    held: metrics.gauge('facts_held', 'Facts that are kept un-acked until their effect is stored.', byPolicy),
    oldestAge: metrics.gauge('facts_oldest_age_seconds', 'Age of the oldest fact that is being handled.', byPolicy),
  };
}
