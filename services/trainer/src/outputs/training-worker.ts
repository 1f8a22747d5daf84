// The training worker, as a step needs it: give it the parent's files, let it train, store each new file under its own digest. It holds
// no state: a repeat is safe at any point.
import { grpcClient, type BlobStore, type GrpcClient, type Trace } from '@backtalk/kit';
import {
  TrainingWorkerServiceDefinition,
  type PutBlobRequest,
  type TrainRequest,
  type TrainResult,
} from '@backtalk/proto/training';
import type { WeightsFile } from '@backtalk/proto/weights';

import { trainerErrors } from '../errors.js';

export interface TrainOptions {
  readonly signal: AbortSignal;
  readonly onProgress: () => void;
  readonly trace?: Trace | undefined;
}

const partBytes = 1024 * 1024;
const askDeadlineMs = 10_000;
/** Adapters of large models are large, and so is their optimiser state. */
const blobDeadlineMs = 300_000;

export class TrainingWorker {
  private readonly client: GrpcClient<typeof TrainingWorkerServiceDefinition>;

  /** @param address host:port */
  constructor(
    address: string,
    private readonly blobs: BlobStore,
    private readonly stepDeadlineMs: number,
  ) {
    this.client = grpcClient(TrainingWorkerServiceDefinition, address, { caller: 'trainer' });
  }

  close(): void {
    this.client.close();
  }

  async train(request: TrainRequest, { signal, onProgress, trace }: TrainOptions): Promise<TrainResult> {
    await this.give([...request.parentAdapter, ...request.parentTrainingState], signal);
    const result = await this.step(request, { signal, onProgress, trace });
    for (const file of [...result.adapter, ...result.trainingState]) await this.fetch(file, signal);
    return result;
  }

  private async give(files: readonly WeightsFile[], signal: AbortSignal): Promise<void> {
    if (files.length === 0) return;
    const digests = [...new Set(files.map(({ digest }) => digest))];
    const { digests: missing } = await this.client.missing({ digests }, { deadlineMs: askDeadlineMs, signal });
    for (const digest of missing) {
      const bytes = await this.blobs.get(digest);
      await this.client.putBlob(parts(digest, bytes), { deadlineMs: blobDeadlineMs, signal });
    }
  }

  private async step(request: TrainRequest, { signal, onProgress, trace }: TrainOptions): Promise<TrainResult> {
    let result: TrainResult | undefined;
    const calling = { deadlineMs: this.stepDeadlineMs, signal, ...(trace === undefined ? {} : { trace }) };
    for await (const { event } of this.client.train(request, calling)) {
      if (event?.$case === 'progress') onProgress();
      else if (event?.$case === 'result') result = event.value;
    }
    if (result === undefined) throw trainerErrors.resultMissing();
    return result;
  }

  private async fetch({ digest }: WeightsFile, signal: AbortSignal): Promise<void> {
    const { blobs } = this;
    // A repeated step has these bytes already; putting them again would only renew their age.
    if (await blobs.has(digest)) return;
    const received: Uint8Array[] = [];
    for await (const { data } of this.client.getBlob({ digest }, { deadlineMs: blobDeadlineMs, signal }))
      received.push(data);
    if ((await blobs.put(Buffer.concat(received))) !== digest) throw trainerErrors.resultDiffers({ digest });
  }
}

/** The call wants an asynchronous flow; the bytes are all here. */
async function* parts(digest: string, bytes: Uint8Array): AsyncIterable<PutBlobRequest> {
  for (let start = 0; start === 0 || start < bytes.byteLength; start += partBytes) {
    const part = { digest: start === 0 ? digest : '', data: bytes.subarray(start, start + partBytes) };
    yield await Promise.resolve(part);
  }
}
