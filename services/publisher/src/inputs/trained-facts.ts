// Takes trained versions from the log, for as long as this publisher leads, and has every version decided in its order, one
// at a time. A fact is settled only when its version is decided; one that can be read never becomes a dead letter, because
// training rests until its version is decided. One whose payload is lost is passed over, and an operator burns its version.
import {
  asBacktalkError,
  backOffMs,
  consumeFacts,
  Mutex,
  versionNumber,
  type BacktalkError,
  type FactConsumer,
  type FactReader,
  type ServiceContext,
  type StoredFact,
} from '@backtalk/kit';
import type { PublisherConfig } from '../config.js';
import { isDecided } from '../domain/policy-state.js';
import { publisherErrors } from '../errors.js';
import type { ReleaseParts, Swap } from './swap.js';

const stopMs = 2_000;
/** A try takes a whole load and measuring. */
const tryAgain = { firstMs: 500, mostMs: 30_000 };
const notTried = { tries: 0, untilMs: 0, failure: undefined as unknown };

/** Whatever stood in the way, the version is still to be decided: as this error its fact waits in flight. */
export function undecided(thrown: unknown): BacktalkError {
  const error = asBacktalkError(thrown);
  if (error.retry === 'stop' || (error.retry === 'later' && error.status === 503)) return error;
  return publisherErrors.notDecided({ cause: `${error.code}: ${error.message}` });
}

/**
 * Facts of versions that are not decided, oldest first. Never fewer than there are because a copy of the log that is behind
 * does not hold yet what another one has delivered.
 *
 * @param to sequence of a fact that was delivered, or undefined for all that there are
 */
export async function undecidedFacts(
  reader: Pick<FactReader, 'read'>,
  policy: string,
  isVersionDecided: (version: string) => boolean,
  from: number,
  to: number | undefined,
  onUnreadable: (error: BacktalkError, sequence: number) => void,
): Promise<StoredFact<'weightsTrained'>[]> {
  const facts: StoredFact<'weightsTrained'>[] = [];
  let isComplete = to === undefined || to < from;
  const filter = { weightsTrained: { policy } };
  for await (const fact of reader.read(['weightsTrained'], { from, filter, onUnreadable })) {
    const { version } = fact.message;
    if (to !== undefined && fact.sequence > to) break;
    isComplete ||= fact.sequence === to;
    if (versionNumber(policy, version) !== undefined && !isVersionDecided(version)) facts.push(fact);
  }
  if (!isComplete) throw publisherErrors.notDecided({ cause: 'this copy of the log does not hold it yet' });
  return facts;
}

/** Whether the newest trained version cannot be read and may be this one: its fact alone names it. */
export async function isUnreadable(
  reader: Pick<FactReader, 'read'>,
  policy: string,
  version: string,
): Promise<boolean> {
  let [readAt, lostAt, newest] = [0, 0, 0];
  const onUnreadable = (_: BacktalkError, sequence: number) => {
    lostAt = sequence;
  };
  const filter = { weightsTrained: { policy } };
  for await (const { message, sequence } of reader.read(['weightsTrained'], { filter, onUnreadable })) {
    readAt = sequence;
    newest = Math.max(newest, versionNumber(policy, message.version) ?? 0);
  }
  return lostAt > readAt && (versionNumber(policy, version) ?? 0) > newest;
}

/** The consumer of trained versions, anew for each leadership. */
export class TrainedFacts {
  private readonly deciding = new Mutex();
  /** Every version trained up to here is decided. */
  private decidedSequence = 0;
  private consumer: FactConsumer<'weightsTrained'> | undefined;
  /** Until then the consumer and the catching up are told the last failure. */
  private resting = notTried;

  constructor(
    private readonly context: ServiceContext<PublisherConfig>,
    private readonly parts: Pick<ReleaseParts, 'policy' | 'chain' | 'events'> & { readonly swap: Swap },
  ) {}

  async start(): Promise<void> {
    const { config, broker, blobs, logger, metrics, fail } = this.context;
    const { policy } = this.parts;
    const { ackWaitMs } = config;
    this.resting = notTried;
    // Kept before it has started: leadership may be lost meanwhile, and what has begun must be stopped.
    this.consumer = consumeFacts({
      broker,
      service: 'publisher',
      facts: ['weightsTrained'],
      filter: { weightsTrained: { policy } },
      durableSuffix: policy,
      handlers: {
        weightsTrained: ({ sequence }) =>
          this.decideUpTo(sequence).catch((error: unknown) => {
            throw undecided(error);
          }),
      },
      concurrency: 1,
      ackWaitMs,
      blobs,
      logger,
      metrics,
      onFatal: fail,
    });
    await this.consumer.start();
  }

  async stop(): Promise<void> {
    const { consumer } = this;
    // Leadership may be regained while it stops: the next one is another.
    this.consumer = undefined;
    await consumer?.stop(stopMs);
  }

  /** Decides this version, or all, and before it every older one that is not decided. */
  decideUpTo(sequence: number | undefined): Promise<void> {
    const { clock } = this.context;
    return this.deciding.run(async () => {
      const { tries, untilMs, failure } = this.resting;
      if (clock.now() < untilMs) throw failure;
      try {
        await this.decideAll(sequence);
        this.resting = notTried;
      } catch (error) {
        const untilMs = clock.now() + backOffMs(tries + 1, tryAgain);
        this.resting = { tries: tries + 1, untilMs, failure: error };
        throw error;
      }
    });
  }

  /** Whether nothing here can decide this version, since its fact is lost. */
  isUnreadable(version: string): Promise<boolean> {
    return isUnreadable(this.context.reader, this.parts.policy, version);
  }

  private async decideAll(sequence: number | undefined): Promise<void> {
    const { policy, chain, events, swap } = this.parts;
    const facts = await undecidedFacts(
      this.context.reader,
      policy,
      (version) => isDecided(chain.state, version),
      this.decidedSequence + 1,
      sequence,
      (error, at) => {
        events.trainedUnreadable(policy, at, error);
      },
    );
    for (const fact of facts) {
      await swap.decide(fact.message, fact.trace);
      this.decidedSequence = fact.sequence;
    }
  }
}
