// Consumes facts for one service. In: a handler for each fact. Out: every fact handled at least once, bounded in number,
// kept alive while it is worked on, settled only when its effect is stored. Different facts keep no order among them.
import type { BlobStore } from '../blobs/blob-store.js';
import { newestInStream } from '../broker/last-of-subject.js';
import { placeOf } from '../broker/pull.js';
import { readStream } from '../broker/read-stream.js';
import { brokerError } from '../broker/translate.js';
import { asBacktalkError, type BacktalkError } from '../errors/backtalk-error.js';
import type { Metrics } from '../telemetry/metrics.js';
import { type BackOff, systemClock } from '../time/clock.js';
import { catalogue, type FactIds, type FactName } from '../topology/catalogue.js';
import { replayStream } from '../topology/streams.js';
import { durableOf, subjectFilter } from '../topology/subjects.js';
import { pointerIn } from './dead-letters.js';
import type { FactHandler } from './delivery.js';
import { factErrors } from './errors.js';
import { FactFlow, factMetrics, type FactMetrics, type FlowRoute, type FlowSettings } from './flow.js';
import { fromWire } from './stored-fact.js';

const defaults = {
  maxDeliver: 8,
  maxHeld: 0,
  backOff: { firstMs: 500, mostMs: 30_000 } as BackOff,
  clock: systemClock,
  /** It is not caught, so the process ends with the error in its log. */
  onFatal: (error: BacktalkError): void => {
    queueMicrotask(() => {
      throw error;
    });
  },
};

type Defaulted = keyof typeof defaults;

export interface ConsumeOptions<F extends FactName>
  extends Omit<FlowSettings, Defaulted>, Partial<Pick<FlowSettings, Defaulted>> {
  readonly facts: readonly F[];
  readonly handlers: { readonly [N in F]: FactHandler<N> };
  readonly metrics: Metrics;
  readonly blobs?: BlobStore;
  /** Names a durable consumer of its own, beside the service's plain one: the policy whose facts it takes. */
  readonly durableSuffix?: string;
  /** Narrows facts to some ids, such as one policy. */
  readonly filter?: { readonly [N in F]?: FactIds<N> };
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
  /** Once. Where it fails, nothing goes on. */
  start(): Promise<void>;
  /** Lets handlers end, then gives back what is unsettled or held. */
  stop(deadlineMs?: number): Promise<void>;
  /** As the broker counts, which has a stored fact in `pending` a moment after the store of it was confirmed. */
  position(name: F): Promise<FactPosition>;
  /** Whether every such fact is settled that the log had before a sequence. Needs the right to read the whole stream. */
  hasSettled(name: F, sequence: number): Promise<boolean>;
}

const measureEveryMs = 5_000;

export function consumeFacts<F extends FactName>(options: ConsumeOptions<F>): FactConsumer<F> {
  return new Consumer(options);
}

class Consumer<F extends FactName> implements FactConsumer<F> {
  private readonly settings: FlowSettings;
  private readonly numbers: FactMetrics;
  private readonly flows: readonly { readonly name: F; readonly flows: readonly FactFlow<F>[] }[];
  private cancelMeasure: () => void = () => undefined;
  private isStopped = false;

  constructor(private readonly options: ConsumeOptions<F>) {
    for (const fact of options.facts) {
      const { consumers } = catalogue[fact];
      if (!consumers.some((service) => service === options.service))
        throw factErrors.notAConsumer({ fact, service: options.service });
    }
    this.settings = { ...defaults, ...options };
    this.numbers = factMetrics(options.metrics);
    // From 0, or the first fact that is given up would be no increase.
    for (const fact of options.facts) this.numbers.handled.inc({ fact, outcome: 'dead' }, 0);
    this.flows = options.facts.map((name) => ({
      name,
      flows: [this.live(name), this.replays(name)].map((route) => new FactFlow(this.settings, route, this.numbers)),
    }));
  }

  async start(): Promise<void> {
    try {
      await Promise.all(this.flows.flatMap(({ flows }) => flows.map((flow) => flow.start())));
    } catch (error) {
      await this.stop();
      throw error;
    }
    if (!this.isStopped) this.measureLater();
  }

  async stop(deadlineMs = 10_000): Promise<void> {
    this.isStopped = true;
    this.cancelMeasure();
    // The last figures would stand without end, though another instance has the facts now.
    for (const gauge of this.gauges()) this.options.facts.forEach((name) => gauge.remove(this.labels(name)));
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

  async hasSettled(name: F, sequence: number): Promise<boolean> {
    const { settledSequence } = await this.position(name);
    if (settledSequence >= sequence) return true;
    const { broker, filter } = this.options;
    const newest = await newestInStream(broker, catalogue[name].stream, subjectFilter<F>(name, filter?.[name]));
    return (newest?.sequence ?? 0) <= settledSequence;
  }

  /** Facts as the log delivers them. */
  private live<N extends F>(name: N): FlowRoute<N> {
    const { stream } = catalogue[name];
    return {
      name,
      stream,
      durable: this.durable(name),
      filter: subjectFilter<N>(name, this.options.filter?.[name]),
      open: (message) => {
        const { sequence, timeMs } = placeOf(message);
        const { subject, headers, data } = message;
        return fromWire(name, { subject, headers, data, sequence, timeMs }, this.options.blobs);
      },
      locate: (message) => ({ stream, subject: message.subject, sequence: placeOf(message).sequence }),
      handler: this.options.handlers[name],
    };
  }

  /** Dead letters that an operator gives back: each points to a fact in the log. */
  private replays<N extends F>(name: N): FlowRoute<N> {
    const durable = this.durable(name);
    const filter = `backtalk.replay.${this.options.service}.${durable}`;
    const { broker, blobs, handlers } = this.options;
    return {
      name,
      stream: replayStream,
      durable,
      filter,
      open: async ({ headers }) => {
        const { stream, subject, sequence } = pointerIn(headers);
        const reading = { broker, stream, filter: subject, from: sequence, until: sequence };
        for await (const stored of readStream(reading)) return fromWire(name, stored, blobs);
        throw factErrors.deadLetterGone({ sequence });
      },
      locate: ({ headers }) => pointerIn(headers),
      handler: handlers[name],
    };
  }

  private durable(name: F): string {
    return durableOf(this.options.service, name, this.options.durableSuffix);
  }

  private measureLater(): void {
    this.cancelMeasure = this.settings.clock.timer(measureEveryMs, () => {
      for (const { name, flows } of this.flows) {
        this.measure(name, flows).catch((error: unknown) => {
          this.options.logger.debug('facts_not_measured', { fact: name, error: asBacktalkError(error) });
        });
      }
      this.measureLater();
    });
  }

  private async measure(name: F, flows: readonly FactFlow<F>[]): Promise<void> {
    const labels = this.labels(name);
    const inFlight = flows.map((flow) => flow.inFlight);
    const held = inFlight.reduce((sum, facts) => sum + facts.held, 0);
    const all = inFlight.reduce((sum, facts) => sum + facts.size, 0);
    const oldestMs = Math.min(...inFlight.map((facts) => facts.oldestMs ?? Number.POSITIVE_INFINITY));
    this.numbers.held.set(labels, held);
    this.numbers.inFlight.set(labels, all - held);
    this.numbers.oldestAge.set(labels, Number.isFinite(oldestMs) ? (this.settings.clock.now() - oldestMs) / 1000 : 0);
    if (this.options.broker.status() === 'down') return;
    const { pending, unsettled } = await this.position(name);
    if (!this.isStopped) this.numbers.pending.set(labels, pending + unsettled);
  }

  private gauges() {
    const { held, inFlight, oldestAge, pending } = this.numbers;
    return [held, inFlight, oldestAge, pending];
  }

  /** Consumers of several policies in one process measure beside each other. */
  private labels(fact: F): Record<string, string> {
    const { durableSuffix: policy } = this.options;
    return policy === undefined ? { fact } : { fact, policy };
  }
}
