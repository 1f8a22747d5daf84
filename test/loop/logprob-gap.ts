// How far the engine's logprobs are from the training worker's on the same ids, under the weights that sampled them.
// In: completed turns and the manifests of their versions. Out: tokens compared, and the mean absolute difference.
import { folderBlobStore, type BlobStore } from '@backtalk/kit';
import { type GrpcClient } from '@backtalk/kit/grpc';
import type { TurnCompleted } from '@backtalk/proto/facts';
import type { PutBlobRequest, TrainingWorkerServiceDefinition } from '@backtalk/proto/training';
import { WeightsManifest, type WeightsFile } from '@backtalk/proto/weights';
import type { FactLog } from './fact-log.js';
import type { TestMachine } from './machine.js';

type WorkerClient = GrpcClient<typeof TrainingWorkerServiceDefinition>;

export interface Gap {
  readonly tokens: number;
  readonly meanAbs: number;
}

const callMs = 240_000;
/** Answers that are scored in one call. */
const itemsMax = 16;

/** Answers that a trained version sampled, by its name. */
function sampledBy(log: FactLog): Map<string, TurnCompleted[]> {
  const byVersion = new Map<string, TurnCompleted[]>(log.trained.map(({ message }) => [message.version, []]));
  for (const { message } of log.completed) {
    if (message.answerIds.length === message.logprobs.length) byVersion.get(message.weightsVersion)?.push(message);
  }
  return byVersion;
}

export function comparableTokens(log: FactLog): number {
  return [...sampledBy(log).values()].flat().reduce((sum, { answerIds }) => sum + answerIds.length, 0);
}

export async function logprobGap(
  machine: TestMachine,
  worker: WorkerClient,
  log: FactLog,
  tokensMin: number,
): Promise<Gap> {
  const blobs = folderBlobStore(machine.data.blobs);
  const differences: number[] = [];
  for (const [version, sampled] of sampledBy(log)) {
    // Short prompts first: each is computed again for its answer.
    const turns = sampled.sort((one, other) => one.promptIds.length - other.promptIds.length);
    const digest = log.trained.find(({ message }) => message.version === version)?.message.manifestDigest ?? '';
    const { adapter } = WeightsManifest.decode(await blobs.get(digest));
    for (let at = 0; at < turns.length && differences.length < tokensMin; at += itemsMax) {
      differences.push(...(await differencesOf(worker, blobs, adapter, turns.slice(at, at + itemsMax))));
    }
  }
  const sum = differences.reduce((total, difference) => total + difference, 0);
  return { tokens: differences.length, meanAbs: sum / differences.length };
}

async function differencesOf(
  worker: WorkerClient,
  blobs: BlobStore,
  adapter: WeightsFile[],
  turns: readonly TurnCompleted[],
): Promise<number[]> {
  await give(worker, blobs, adapter);
  const items = turns.map(({ promptIds, answerIds, sampling }) => ({
    promptIds,
    answerIds,
    temperature: sampling?.temperature ?? 1,
  }));
  const { results } = await worker.score({ adapter, items }, { deadlineMs: callMs });
  return turns.flatMap(({ logprobs }, at) =>
    logprobs.map((logprob, token) => Math.abs(logprob - (results[at]?.logprobs[token] ?? Number.NaN))),
  );
}

async function give(worker: WorkerClient, blobs: BlobStore, files: readonly WeightsFile[]): Promise<void> {
  const { digests } = await worker.missing({ digests: files.map(({ digest }) => digest) }, { deadlineMs: callMs });
  for (const digest of digests) {
    const data = await blobs.get(digest);
    await worker.putBlob(inParts(digest, data), { deadlineMs: callMs });
  }
}

const partBytes = 1024 * 1024;

async function* inParts(digest: string, data: Uint8Array): AsyncIterable<PutBlobRequest> {
  for (let start = 0; start < data.byteLength; start += partBytes) {
    yield { digest: start === 0 ? digest : '', data: data.subarray(start, start + partBytes) };
  }
}
