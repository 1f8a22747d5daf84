// Stands between trainer and training worker, passes every call on, and remembers what was asked: so that a test can see
// how far a step is, and kill the worker in its middle.
import { createLogger, type WireSecurity } from '@backtalk/kit';
import { grpcClient, serveGrpc, type GrpcClient, type GrpcServer } from '@backtalk/kit/grpc';
import { until } from '@backtalk/kit/testing';
import {
  TrainingWorkerServiceDefinition,
  type TrainRequest,
  type TrainResponse,
  type TrainingWorkerServiceImplementation,
} from '@backtalk/proto/training';

type WorkerClient = GrpcClient<typeof TrainingWorkerServiceDefinition>;

interface CallContext {
  readonly signal: AbortSignal;
}

const askMs = 30_000;
const stepMs = 300_000;

export class TrainingTap {
  /** Every step that was asked for, in order; a repeated step stands here again. */
  readonly requests: TrainRequest[] = [];
  /** The phase that the step in hand is in. */
  phase = '';
  private upstream: WorkerClient | undefined;
  private server: GrpcServer | undefined;

  async start(port: number): Promise<void> {
    this.server = await serveGrpc({
      address: { host: '127.0.0.1', port },
      services: [{ definition: TrainingWorkerServiceDefinition, implementation: this.implementation() }],
      logger: createLogger({ service: 'test', level: 'silent' }),
    });
  }

  /** Where the worker really is. */
  lead(address: string, wire: WireSecurity): void {
    this.upstream?.close();
    this.upstream = grpcClient(TrainingWorkerServiceDefinition, address, { caller: 'trainer', wire });
  }

  get worker(): WorkerClient {
    if (this.upstream === undefined) throw new RangeError('The tap leads nowhere yet.');
    return this.upstream;
  }

  async stop(): Promise<void> {
    await this.server?.stop(0);
    this.upstream?.close();
  }

  async untilPhase(phase: string): Promise<void> {
    await until(() => this.phase === phase, { what: `A step in its phase ${phase}`, timeoutMs: stepMs, everyMs: 5 });
  }

  private implementation(): TrainingWorkerServiceImplementation<CallContext> {
    return {
      status: (request) => this.worker.status(request, { deadlineMs: askMs }),
      missing: (request) => this.worker.missing(request, { deadlineMs: askMs }),
      putBlob: (parts) => this.worker.putBlob(parts, { deadlineMs: askMs }),
      getBlob: (request) => this.worker.getBlob(request, { deadlineMs: askMs }),
      train: (request, { signal }) => this.train(request, signal),
      score: (request) => this.worker.score(request, { deadlineMs: stepMs }),
    };
  }

  private async *train(request: TrainRequest, signal: AbortSignal): AsyncIterable<TrainResponse> {
    this.requests.push(request);
    try {
      for await (const response of this.worker.train(request, { deadlineMs: stepMs, signal })) {
        if (response.event?.$case === 'progress') this.phase = response.event.value.phase;
        yield response;
      }
    } finally {
      this.phase = '';
    }
  }
}
