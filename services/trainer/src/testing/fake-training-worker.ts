// A training worker without a model, for tests: the same calls, the same rules for blobs, bytes that follow from the request alone.
// In: what tests tell it to do (hold a step, break it, fail it). Out: adapters and states that differ whenever the request differs.
import { sha256Hex } from '@backtalk/kit';
import { serveGrpc, type GrpcServer } from '@backtalk/kit/grpc';
import { silentLogger } from '@backtalk/kit/testing';
import {
  TrainingWorkerServiceDefinition,
  TrainRequest,
  type GetBlobRequest,
  type GetBlobResponse,
  type PutBlobRequest,
  type TrainingWorkerServiceImplementation,
  type TrainResponse,
  type TrainResult,
} from '@backtalk/proto/training';
import type { SampleReport, WeightsFile } from '@backtalk/proto/weights';
import { createHash } from 'node:crypto';

import { fakeWorkerErrors } from './fake-worker-errors.js';

export interface FakeStep {
  readonly request: TrainRequest;
  /** The request as it came over the wire. */
  readonly bytes: Uint8Array;
}

/** What becomes of a step after its first progress: nothing special, or an error to fail with. */
export type StepPlot = (step: FakeStep) => Promise<void> | void;

export interface FakeTrainingWorkerOptions {
  readonly port?: number;
  /** Bytes of each made file. */
  readonly fileBytes?: number;
  /** Divergence to the teacher that is reported for every hinted sample of a step. */
  readonly divergence?: (request: TrainRequest) => number;
  readonly measurements?: (request: TrainRequest) => Readonly<Record<string, number>>;
  /** Why a sample is reported as dropped; empty where it was trained on. */
  readonly dropped?: (turn: string) => string;
  /** Which of its hints a sample is reported to be taught with. */
  readonly hintChosen?: () => number;
}

type CallContext = object;

const usual = { loss_opd: 1, kl_base: 1, kl_step: 0.5, seconds: 0.1 };

/** What the trainer has to bring. */
export const workerToken = 'the secret of trainer and training';

export class FakeTrainingWorker {
  /** Every Train call, in order. */
  readonly steps: FakeStep[] = [];
  /** Steps that were taken to their end. */
  readonly finished: string[] = [];
  readonly blobs = new Map<string, Uint8Array>();
  /** Files of all steps, in order. */
  readonly made: WeightsFile[] = [];
  plot: StepPlot = () => undefined;
  /** Other bytes for the same request, as another processor may give. */
  salt = '';
  /** Of the weights that it has under the name of its base model. */
  baseDigest = 'base0';
  teacherDigest = '';
  /** A step comes out as its parent. */
  unmoved = false;
  /** The step that it says it takes; empty: none. */
  taking = '';
  private server: GrpcServer | undefined;
  private boundPort: number;

  constructor(private readonly options: FakeTrainingWorkerOptions = {}) {
    this.boundPort = options.port ?? 0;
  }

  get port(): number {
    return this.boundPort;
  }

  get address(): string {
    return `127.0.0.1:${this.boundPort}`;
  }

  async start(): Promise<void> {
    this.server = await serveGrpc({
      address: { host: '127.0.0.1', port: this.boundPort },
      services: [{ definition: TrainingWorkerServiceDefinition, implementation: this.implementation() }],
      logger: silentLogger,
      wire: { tokens: { trainerToTraining: workerToken } },
    });
    this.boundPort = this.server.port;
  }

  /** Cuts every call at once, as a killed process does; `start` brings it back on the same port, with an empty cache. */
  async kill(): Promise<void> {
    await this.server?.stop(0);
    this.server = undefined;
    this.blobs.clear();
  }

  private implementation(): TrainingWorkerServiceImplementation<CallContext> {
    return {
      status: () =>
        Promise.resolve({
          baseModel: 'fake',
          dtype: 'float32',
          device: 'cpu',
          training: this.taking,
          maxContext: 4_096,
          baseDigest: this.baseDigest,
          controlTokens: ['<|im_start|>', '<|im_end|>', '[MESSAGE]'],
        }),
      missing: ({ digests }) => Promise.resolve({ digests: digests.filter((digest) => !this.blobs.has(digest)) }),
      putBlob: (parts) => this.putBlob(parts),
      getBlob: (request) => this.getBlob(request),
      train: (request) => this.train(request),
      score: () => Promise.resolve({ results: [] }),
    };
  }

  private async putBlob(parts: AsyncIterable<PutBlobRequest>): Promise<{ digest: string }> {
    let digest = '';
    const received: Uint8Array[] = [];
    for await (const part of parts) {
      digest ||= part.digest;
      received.push(part.data);
    }
    const bytes = Buffer.concat(received);
    if (sha256Hex(bytes) !== digest) throw fakeWorkerErrors.blobRefused();
    this.blobs.set(digest, bytes);
    return { digest };
  }

  private async *getBlob({ digest }: GetBlobRequest): AsyncIterable<GetBlobResponse> {
    const bytes = this.blobs.get(digest);
    if (bytes === undefined) throw fakeWorkerErrors.blobMissing();
    const half = Math.ceil(bytes.byteLength / 2);
    yield await Promise.resolve({ data: bytes.subarray(0, half) });
    yield { data: bytes.subarray(half) };
  }

  private async *train(request: TrainRequest): AsyncIterable<TrainResponse> {
    const step = { request, bytes: TrainRequest.encode(request).finish() };
    this.steps.push(step);
    for (const { digest } of [...request.parentAdapter, ...request.parentTrainingState]) {
      if (!this.blobs.has(digest)) throw fakeWorkerErrors.blobMissing();
    }
    yield progress('load', 0, 0);
    await this.plot(step);
    yield progress('forward_backward', 1, 1);
    const result = this.resultOf(step);
    this.finished.push(request.call);
    yield { event: { $case: 'result', value: result } };
  }

  private resultOf({ request }: FakeStep): TrainResult {
    const bytes = TrainRequest.encode({ ...request, call: this.salt }).finish();
    const { divergence = () => 8, measurements = () => ({}), dropped = () => '', hintChosen = () => 0 } = this.options;
    const samples: SampleReport[] = request.samples.map(({ turn, teacherPromptIds }) => ({
      turn,
      dropped: dropped(turn),
      divergence: teacherPromptIds.length === 0 ? 0 : divergence(request),
      staleness: 0.01,
      gradientShare: 1 / request.samples.length,
      answerReplaced: false,
      hintChosen: hintChosen(),
    }));
    const made = {
      adapter: [this.make('adapter_model.safetensors', bytes), this.make('adapter_config.json', bytes)],
      trainingState: [this.make('optimizer.safetensors', bytes)],
    };
    const { parentAdapter: adapter, parentTrainingState: trainingState } = request;
    return {
      ...(this.unmoved ? { adapter, trainingState } : made),
      report: {
        measurements: { ...usual, optimizer_restored: Number(trainingState.length > 0), ...measurements(request) },
        samples,
      },
      probes: [],
      dtype: 'float32',
      baseModel: 'fake',
      baseDigest: this.baseDigest,
      teacherDigest: this.teacherDigest,
    };
  }

  private make(name: string, request: Uint8Array): WeightsFile {
    const { fileBytes = 4_096 } = this.options;
    const seed = createHash('sha256').update(name).update(request).digest();
    const bytes = Buffer.alloc(fileBytes, seed);
    const digest = sha256Hex(bytes);
    this.blobs.set(digest, bytes);
    const file = { name, digest, bytes: bytes.byteLength };
    this.made.push(file);
    return file;
  }
}

function progress(phase: string, microBatch: number, microBatches: number): TrainResponse {
  return { event: { $case: 'progress', value: { phase, microBatch, microBatches, loss: 1 } } };
}
