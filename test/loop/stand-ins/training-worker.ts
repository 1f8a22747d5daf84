// The stand-in for a training worker: the same calls and the same rules for blobs, without a model. What it makes follows
// from the request alone, fits the stand-in engine, and passes the publisher's gate. A step can be held in its middle.
import { putFakeVersion } from '@backtalk/dialects/testing';
import { sha256Hex, type BlobStore } from '@backtalk/kit';
import {
  TrainRequest,
  type GetBlobRequest,
  type PutBlobRequest,
  type TrainResponse,
  type TrainResult,
  type TrainingWorkerServiceImplementation,
} from '@backtalk/proto/training';
import type { WeightsFile } from '@backtalk/proto/weights';
import { standInErrors } from './errors.js';

const optimizerBytes = 4_096;

/** Under the names of the real worker, so that whoever shows them has something to show. */
export const standInMeasurements: Readonly<Record<string, number>> = {
  loss: 1.2,
  loss_binary: 0.1,
  loss_opd: 1,
  loss_kl: 0.1,
  divergence: 8,
  gradient_norm: 0.7,
  entropy: 1.5,
  v_mean: 1,
  v_max: 1.2,
  rho_mean: 1,
  ess: 0.98,
  masked_share: 0,
  clipped_share: 0,
  logprob_difference: 0.001,
  logprob_bias: 0,
  kl_base: 1,
  kl_step: 0.5,
  step_scale: 1,
  samples_trained: 4,
  tokens: 160,
  seconds: 0.1,
  optimizer_restored: 1,
};

export interface StandInCounts {
  /** Call ids of every step that began, and of every step that was taken to its end, in order. */
  readonly begun: string[];
  readonly finished: string[];
}

export class StandInTrainingWorker {
  readonly counts: StandInCounts = { begun: [], finished: [] };
  /** In place of the usual ones, by name. */
  figures: Readonly<Record<string, number>> = {};
  private held = false;
  private release: () => void = () => undefined;
  private released: Promise<void> = Promise.resolve();

  constructor(
    private readonly blobs: BlobStore,
    private readonly baseModel: string,
  ) {}

  /** While it holds, steps stop in their middle. */
  hold(hold: boolean): void {
    if (hold === this.held) return;
    this.held = hold;
    if (!hold) {
      this.release();
      return;
    }
    this.released = new Promise((resolve) => {
      this.release = resolve;
    });
  }

  implementation(): TrainingWorkerServiceImplementation<object> {
    return {
      status: async () => ({
        baseModel: this.baseModel,
        dtype: 'float32',
        device: 'cpu',
        training: '',
        maxContext: 8_192,
        baseDigest: '',
        controlTokens: [],
      }),
      missing: async ({ digests }) => {
        const held = await Promise.all(digests.map((digest) => this.blobs.has(digest)));
        return { digests: digests.filter((_, at) => held[at] !== true) };
      },
      putBlob: (parts) => this.putBlob(parts),
      getBlob: (request) => this.getBlob(request),
      train: (request) => this.train(request),
      score: async ({ items }) => ({ results: items.map(() => ({ logprobs: [] })) }),
    };
  }

  private async putBlob(parts: AsyncIterable<PutBlobRequest>): Promise<{ digest: string }> {
    let digest = '';
    const received: Uint8Array[] = [];
    for await (const part of parts) {
      digest ||= part.digest;
      received.push(part.data);
    }
    if ((await this.blobs.put(Buffer.concat(received))) !== digest) throw standInErrors.blobRefused({});
    return { digest };
  }

  private async *getBlob({ digest }: GetBlobRequest): AsyncIterable<{ data: Uint8Array }> {
    if (!(await this.blobs.has(digest))) throw standInErrors.blobMissing({});
    yield { data: await this.blobs.get(digest) };
  }

  private async *train(request: TrainRequest): AsyncIterable<TrainResponse> {
    this.counts.begun.push(request.call);
    for (const { digest } of [...request.parentAdapter, ...request.parentTrainingState]) {
      if (!(await this.blobs.has(digest))) throw standInErrors.blobMissing({});
    }
    yield progress('load', 0);
    yield progress('forward_backward', 1);
    await this.released;
    const result = await this.resultOf(request);
    yield progress('save', 2);
    this.counts.finished.push(request.call);
    yield { event: { $case: 'result', value: result } };
  }

  private async resultOf(request: TrainRequest): Promise<TrainResult> {
    // The call names the attempt and nothing of the step: it may not change the bytes.
    const seed = sha256Hex(TrainRequest.encode({ ...request, call: '' }).finish());
    const { manifest } = await putFakeVersion({
      blobs: this.blobs,
      version: seed,
      baseModel: this.baseModel,
      rank: request.config?.loraRank ?? 8,
    });
    const state = Buffer.alloc(optimizerBytes, seed);
    const optimizer: WeightsFile = {
      name: 'optimizer.safetensors',
      digest: await this.blobs.put(state),
      bytes: state.byteLength,
    };
    const samples = request.samples.map(({ turn, teacherPromptIds }, at) => ({
      turn,
      dropped: '',
      staleness: 0.01,
      gradientShare: 1 / request.samples.length,
      answerReplaced: at === 0,
      hintChosen: 0,
      divergence: teacherPromptIds.length === 0 ? 0 : 8,
    }));
    return {
      adapter: manifest.adapter,
      trainingState: [optimizer],
      report: { measurements: { ...standInMeasurements, ...this.figures }, samples },
      probes: manifest.probes,
      dtype: 'float32',
      baseModel: this.baseModel,
      baseDigest: '',
      teacherDigest: '',
    };
  }
}

function progress(phase: string, microBatch: number): TrainResponse {
  return { event: { $case: 'progress', value: { phase, microBatch, microBatches: 2, loss: 1 } } };
}
