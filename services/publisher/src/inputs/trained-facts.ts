// Takes trained versions from the log, for as long as this publisher leads.
//
// In: facts `weights.trained` of the policy. Out: a call for each, which returns when the version is decided; only then
// is the fact settled. Never: a dead letter of a fact that can be read; training rests until its version is decided.
import {
  asBacktalkError,
  consumeFacts,
  type BacktalkError,
  type BlobStore,
  type Broker,
  type FactConsumer,
  type Logger,
  type Metrics,
} from '@backtalk/kit';
import { publisherErrors } from '../errors.js';

export interface TrainedFactsParts {
  readonly policy: string;
  readonly broker: Broker;
  readonly ackWaitMs: number;
  readonly blobs: BlobStore;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** Ends the service. */
  readonly fail: (error: BacktalkError) => void;
}

const stopMs = 2_000;

/** Whatever stood in the way, the version is still to be decided: as this error its fact waits in hand. */
export function undecided(thrown: unknown): BacktalkError {
  const error = asBacktalkError(thrown);
  if (error.retry === 'stop' || (error.retry === 'later' && error.status === 503)) return error;
  return publisherErrors.notDecided({ cause: `${error.code}: ${error.message}` });
}

/** The consumer of trained versions, anew for each leadership. */
export class TrainedFacts {
  private consumer: FactConsumer<'weightsTrained'> | undefined;

  constructor(
    private readonly parts: TrainedFactsParts,
    private readonly decideUpTo: (sequence: number) => Promise<void>,
  ) {}

  async start(): Promise<void> {
    const { policy, broker, ackWaitMs, blobs, logger, metrics, fail } = this.parts;
    // Kept before it has started: leadership may be lost meanwhile, and what has begun must be stopped.
    this.consumer = consumeFacts({
      broker,
      service: 'publisher',
      facts: ['weightsTrained'],
      filter: { weightsTrained: { policy: policy } },
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
    await this.consumer?.stop(stopMs);
    this.consumer = undefined;
  }
}
