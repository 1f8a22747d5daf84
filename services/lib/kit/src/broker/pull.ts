// A flow of messages from one JetStream consumer, never more in flight than there are slots for.
// In: how to make sure that the consumer exists, and what to do with a message. Out: messages, one callback each.
// It survives lost connections, restarted brokers and deleted consumers. It acknowledges nothing.
// The library's own `consumer.consume` was tried (nats 2.29.3): with `max_messages` 4 it had 60 messages in flight at once,
// because it counts those that it has handed over as done, and after a deleted consumer it never took another message.
// "has no more handlers at work than it may …" (consumer.test.ts) and "makes a consumer again that was deleted"
// (consumer-broker-loss.test.ts) hold this one to both.
import {
  createInbox,
  nanos,
  type Msg,
  type Subscription,
  type NatsError,
  type ConsumerConfig,
  type ConsumerInfo,
} from 'nats';
import type { BacktalkError } from '../errors/backtalk-error.js';
import { type Clock, systemClock } from '../time/clock.js';
import { inboxPrefixOf } from '../topology/users.js';
import type { Broker } from './connect.js';
import { apiError } from './store-message.js';
import { brokerError } from './translate.js';

interface PullOptions {
  readonly broker: Broker;
  readonly stream: string;
  /** Creates the consumer where it is missing and gives its name. Called again after every disturbance. */
  readonly ensure: () => Promise<string>;
  /** How many messages may be in flight; `done()` frees one. */
  readonly slots: number;
  readonly onMessage: (message: Msg) => void;
  /** An error that no waiting will mend: wrong permissions, no such stream. */
  readonly onFatal: (error: BacktalkError) => void;
  readonly clock?: Clock;
}

const expiresMs = 30_000;
const heartbeatMs = 4_000;
/** Two heartbeats and a half without a sign: the request is lost. */
const silenceMs = 10_000;
const retryFirstMs = 100;
const retryMostMs = 2_000;

export class Pull {
  private readonly clock: Clock;
  private inbox = '';
  private readonly stopping = new AbortController();
  private subscription: Subscription | undefined;
  private offStatus: () => void = () => undefined;
  private cancelWatch: () => void = () => undefined;
  private consumer: string | undefined;
  private ensuring = false;
  private inFlight = 0;
  private requested = 0;

  constructor(private readonly options: PullOptions) {
    this.clock = options.clock ?? systemClock;
  }

  /** Resolves when the first request for messages is on its way. */
  async start(): Promise<void> {
    this.offStatus = this.options.broker.onStatus((status) => {
      if (status === 'up') this.again();
    });
    await this.ensure();
  }

  /** No further message is taken; those in flight are the caller's. */
  stop(): void {
    this.stopping.abort();
    this.offStatus();
    this.cancelWatch();
    this.subscription?.unsubscribe();
  }

  /** The caller has finished with one message. */
  done(): void {
    this.inFlight -= 1;
    this.request();
  }

  /** Something is wrong with the consumer: makes sure of it once more, then goes on. */
  again(): void {
    this.ensure().catch((error: unknown) => {
      this.options.onFatal(brokerError(error, { doing: 'consume' }));
    });
  }

  private async ensure(): Promise<void> {
    if (this.ensuring) return;
    this.ensuring = true;
    this.cancelWatch();
    try {
      this.consumer = await this.ensureUntilDone();
    } finally {
      this.ensuring = false;
    }
    this.listen();
    this.requested = 0;
    this.request();
  }

  /** At another inbox each time: the broker drops requests whose inbox has no listener, so that none is filled beside the next. */
  private listen(): void {
    const { broker, stream } = this.options;
    this.subscription?.unsubscribe();
    if (this.stopping.signal.aborted || broker.nc.isClosed()) return;
    this.inbox = createInbox(inboxPrefixOf(broker.user));
    this.subscription = broker.nc.subscribe(this.inbox, {
      callback: (error, message) => {
        if (error === null) this.take(message);
        else broker.logger.error('pull_subscription_lost', { stream, error });
      },
    });
  }

  private async ensureUntilDone(): Promise<string | undefined> {
    let said = '';
    for (let delayMs = retryFirstMs; !this.stopping.signal.aborted; delayMs = Math.min(delayMs * 2, retryMostMs)) {
      await this.connected();
      if (this.stopping.signal.aborted) break;
      try {
        return await this.options.ensure();
      } catch (error) {
        const translated = brokerError(error, { doing: 'create a consumer', stream: this.options.stream });
        if (translated.retry !== 'later') throw translated;
        // While the broker is away, the connection says so.
        if (translated.code !== said && this.options.broker.status() === 'up')
          this.options.broker.logger.warn('consumer_not_created', { stream: this.options.stream, error: translated });
        said = translated.code;
      }
      // Aborted: the loop's condition ends it.
      await this.clock.sleep(delayMs, this.stopping.signal).catch(() => undefined);
    }
    return undefined;
  }

  /** Asking while the connection is down would only cost the time of an answer that cannot come. */
  private async connected(): Promise<void> {
    const { broker } = this.options;
    const { signal } = this.stopping;
    if (broker.status() === 'up' || signal.aborted) return;
    await new Promise<void>((resolve) => {
      const off = broker.onStatus((status) => {
        if (status !== 'up') return;
        off();
        resolve();
      });
      signal.addEventListener(
        'abort',
        () => {
          off();
          resolve();
        },
        { once: true },
      );
    });
  }

  private request(): void {
    const { broker, slots, stream } = this.options;
    if (this.consumer === undefined || this.ensuring || this.stopping.signal.aborted) return;
    if (broker.nc.isClosed()) return;
    const free = slots - this.inFlight - this.requested;
    // Small requests are gathered, unless there is none open.
    if (free <= 0 || (this.requested > 0 && free * 2 < slots)) return;
    const request = { batch: free, expires: nanos(expiresMs), idle_heartbeat: nanos(heartbeatMs) };
    broker.nc.publish(`$JS.API.CONSUMER.MSG.NEXT.${stream}.${this.consumer}`, JSON.stringify(request), {
      reply: this.inbox,
    });
    this.requested += free;
    this.watch();
  }

  private watch(): void {
    this.cancelWatch();
    if (this.requested <= 0 || this.stopping.signal.aborted) return;
    this.cancelWatch = this.clock.timer(silenceMs, () => {
      if (this.options.broker.status() === 'up') this.again();
    });
  }

  private take(message: Msg): void {
    if (this.stopping.signal.aborted) return;
    const code = message.headers?.code ?? 0;
    const isFromStream = message.reply?.startsWith('$JS.ACK.') ?? false;
    // 100 is a heartbeat; 404 and 408 end a request; 409 and 503 mean that the consumer may be gone.
    if (code === 0 || isFromStream) {
      this.requested = Math.max(0, this.requested - 1);
      this.inFlight += 1;
      this.watch();
      this.options.onMessage(message);
      this.request();
    } else if (code === 100) {
      this.watch();
    } else if (code === 404 || code === 408) {
      const unfilled = Number.parseInt(message.headers?.get('Nats-Pending-Messages') ?? '', 10);
      this.requested = Number.isNaN(unfilled) ? 0 : Math.max(0, this.requested - unfilled);
      this.request();
    } else {
      this.consumer = undefined;
      // Not at once: a broker that says so is often about to restart or to elect.
      this.cancelWatch();
      this.cancelWatch = this.clock.timer(retryFirstMs, () => {
        this.again();
      });
    }
  }
}

export interface MessagePlace {
  readonly stream: string;
  readonly consumer: string;
  /** 1 at the first delivery. */
  readonly deliveries: number;
  readonly sequence: number;
  /** Of the consumer: gaps mean lost messages. */
  readonly consumerSequence: number;
  readonly timeMs: number;
  /** How many the consumer has yet to deliver. */
  readonly pending: number;
}

/** `$JS.ACK.<stream>.<consumer>.<deliveries>.<sequence>.<consumer sequence>.<time>.<pending>`, or with domain and account before the stream. */
export function placeOf(message: Msg): MessagePlace {
  const tokens = (message.reply ?? '').split('.');
  const at = tokens.length > 9 ? 4 : 2;
  const number = (offset: number) => Number(tokens[at + offset] ?? 0);
  return {
    stream: tokens[at] ?? '',
    consumer: tokens[at + 1] ?? '',
    deliveries: number(2),
    sequence: number(3),
    consumerSequence: number(4),
    timeMs: Math.floor(number(5) / 1e6),
    pending: number(6),
  };
}

type ConsumerPlan = Partial<ConsumerConfig> & { readonly name: string; readonly filter_subject: string };

type Answer = Partial<ConsumerInfo> & { readonly error?: NatsError['api_error'] };

interface CreatedConsumer {
  readonly name: string;
  readonly pending: number;
}

export async function createConsumer(broker: Broker, stream: string, plan: ConsumerPlan): Promise<CreatedConsumer> {
  const subject = `$JS.API.CONSUMER.CREATE.${stream}.${plan.name}.${plan.filter_subject}`;
  const data = JSON.stringify({ stream_name: stream, config: plan, action: '' });
  const doing = `create a consumer of ${stream}`;
  const reply = await broker.ask({ subject, data, timeoutMs: 5_000, doing });
  const answer = reply.json<Answer>();
  if (answer.error !== undefined) throw brokerError(apiError(answer.error), { doing, subject, stream });
  return { name: plan.name, pending: answer.num_pending ?? 0 };
}
