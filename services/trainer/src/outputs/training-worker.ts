// The training worker, as a step needs it: give it the parent's files, let it train, store each new file under its own digest. It holds
// no state: a repeat is safe at any point.
import { type BlobStore, type Trace, type WireSecurity } from '@backtalk/kit';
import { grpcClient, type GrpcClient } from '@backtalk/kit/grpc';
import {
  TrainingWorkerServiceDefinition,
  type PutBlobRequest,
  type TrainRequest,
  type TrainResult,
} from '@backtalk/proto/training';

import { trainerErrors } from '../errors.js';

export interface TrainOptions {
  readonly signal: AbortSignal;
  readonly trace?: Trace | undefined;
}

/** The base model that a worker trains on. */
export interface WorkerBase {
  /** As engines serve it. */
  readonly name: string;
  /** Of its weights and vocabulary; empty where the worker does not say it. */
  readonly digest: string;
  readonly controlTokens: readonly string[];
}

const partBytes = 1024 * 1024;
const askDeadlineMs = 10_000;
/** Adapters of large models are large, and so is their optimiser state. */
const blobDeadlineMs = 300_000;

export class TrainingWorker {
  private readonly client: GrpcClient<typeof TrainingWorkerServiceDefinition>;

  /** @param address host:port */
  constructor(
    readonly address: string,
    private readonly blobs: BlobStore,
    private readonly stepDeadlineMs: number,
    wire?: WireSecurity,
  ) {
    this.client = grpcClient(TrainingWorkerServiceDefinition, address, {
      caller: 'trainer',
      ...(wire === undefined ? {} : { wire }),
    });
  }

  close(): void {
    this.client.close();
  }

  /** Throws where the worker cannot be reached, or takes another step: that says nothing about a batch. */
  async look(call: string, signal: AbortSignal): Promise<{ readonly base: WorkerBase; readonly takesIt: boolean }> {
    const status = await this.client.status({}, { deadlineMs: askDeadlineMs, signal });
    const { training, baseModel, baseDigest, controlTokens } = status;
    if (training !== '' && training !== call) throw trainerErrors.workerBusy({ call: training });
    return { base: { name: baseModel, digest: baseDigest, controlTokens }, takesIt: training === call };
  }

  async train(request: TrainRequest, { signal, trace }: TrainOptions): Promise<TrainResult> {
    const { client, blobs } = this;
    const given = new Set([...request.parentAdapter, ...request.parentTrainingState].map(({ digest }) => digest));
    if (given.size > 0) {
      const { digests: missing } = await client.missing({ digests: [...given] }, { deadlineMs: askDeadlineMs, signal });
      for (const digest of missing) {
        const bytes = await blobs.get(digest);
        await client.putBlob(parts(digest, bytes), { deadlineMs: blobDeadlineMs, signal });
      }
    }

    let result: TrainResult | undefined;
    const calling = { deadlineMs: this.stepDeadlineMs, signal, ...(trace === undefined ? {} : { trace }) };
    for await (const { event } of client.train(request, calling)) {
      if (event?.$case === 'result') result = event.value;
    }
    if (result === undefined) throw trainerErrors.resultMissing();

    for (const { digest } of [...result.adapter, ...result.trainingState]) {
      // A repeated step has these bytes already; putting them again would only renew their age.
      if (await blobs.has(digest)) continue;
      const received: Uint8Array[] = [];
      for await (const { data } of client.getBlob({ digest }, { deadlineMs: blobDeadlineMs, signal }))
        received.push(data);
      if ((await blobs.put(Buffer.concat(received))) !== digest) throw trainerErrors.resultDiffers({ digest });
    }
    return result;
  }
}

/** The call wants an asynchronous flow; the bytes are all here. */
async function* parts(digest: string, bytes: Uint8Array): AsyncIterable<PutBlobRequest> {
  for (let start = 0; start === 0 || start < bytes.byteLength; start += partBytes) {
    const part = { digest: start === 0 ? digest : '', data: bytes.subarray(start, start + partBytes) };
    yield await Promise.resolve(part);
  }
}
