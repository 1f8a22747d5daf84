// Makes a weights version that a fake engine, a loader and a publisher all take: small tensors in the right format, and
// probes whose logprobs are those that a fake engine computes for these weights.
//
// In: names and a seed. Out: blobs in the store, and the manifest with its digest.
import { sha256Hex, type BlobStore } from '@backtalk/kit';
import { WeightsManifest, type Probe, type WeightsFile } from '@backtalk/proto/weights';
import { baseDigest, fakeLogprobs, generate, templateIds } from './fake-tokens.js';

export interface FakeVersionOptions {
  readonly blobs: BlobStore;
  readonly version: string;
  readonly policy?: string;
  readonly parent?: string;
  readonly batch?: number;
  readonly baseModel?: string;
  readonly rank?: number;
  /** What probes say of the new weights' logprobs, in place of the truth. */
  readonly logprobs?: (truth: readonly number[]) => number[];
  /** What probes say of the base's logprobs, in place of the truth. */
  readonly baseLogprobs?: (truth: readonly number[]) => number[];
  /** What probes say of the base that is shown the lessons; there are none where it is left out. */
  readonly toldLogprobs?: (truth: readonly number[]) => number[];
}

export interface FakeVersion {
  readonly manifest: WeightsManifest;
  readonly manifestDigest: string;
}

const hiddenWidth = 16;
const questions = ['How is the weather?', 'Who wrote this?', 'Tell me about rivers.', 'What should I cook tonight?'];
const answerTokens = 8;

export async function putFakeVersion(options: FakeVersionOptions): Promise<FakeVersion> {
  const { blobs, version, policy = 'backtalk', baseModel = 'smollm2-135m-wishes', rank = 8 } = options;
  const weights = fakeSafetensors(version, rank);
  const adapter = [
    await put(blobs, 'adapter_model.safetensors', weights),
    await put(blobs, 'adapter_config.json', Buffer.from(JSON.stringify(adapterConfig(baseModel, rank)))),
  ];
  const manifest = WeightsManifest.fromPartial({
    policy,
    version,
    parent: options.parent ?? `${policy}-v0`,
    batch: options.batch ?? 1,
    baseModel,
    loraRank: rank,
    loraAlpha: 2 * rank,
    adapter,
    probes: questions.map((question) => probeOf(question, sha256Hex(weights), options)),
    dtype: 'float32',
    configDigest: '',
    meanAnswerLength: 40,
  });
  return { manifest, manifestDigest: await blobs.put(WeightsManifest.encode(manifest).finish()) };
}

function probeOf(
  question: string,
  digest: string,
  { logprobs, baseLogprobs, toldLogprobs }: FakeVersionOptions,
): Probe {
  const promptIds = templateIds([{ role: 'user', content: question }]);
  const answerIds = generate(digest, promptIds, 0, answerTokens).map(({ id }) => id);
  const truth = fakeLogprobs(digest, promptIds, answerIds);
  const base = fakeLogprobs(baseDigest, promptIds, answerIds);
  return {
    promptIds,
    answerIds,
    logprobs: logprobs?.(truth) ?? truth,
    baseLogprobs: baseLogprobs?.(base) ?? base,
    toldLogprobs: toldLogprobs?.(truth) ?? [],
  };
}

/** Two tensors whose bytes follow from the version's name. */
function fakeSafetensors(version: string, rank: number): Uint8Array {
  const name = 'base_model.model.model.layers.0.self_attn.q_proj';
  const bytes = 4 * rank * hiddenWidth;
  const header = Buffer.from(
    JSON.stringify({
      [`${name}.lora_A.weight`]: { dtype: 'F32', shape: [rank, hiddenWidth], data_offsets: [0, bytes] },
      [`${name}.lora_B.weight`]: { dtype: 'F32', shape: [hiddenWidth, rank], data_offsets: [bytes, 2 * bytes] },
    }),
  );
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.length));
  return Buffer.concat([length, header, Buffer.alloc(2 * bytes, sha256Hex(Buffer.from(version)))]);
}

function adapterConfig(baseModel: string, rank: number) {
  return {
    peft_type: 'LORA',
    task_type: 'CAUSAL_LM',
    base_model_name_or_path: baseModel,
    r: rank,
    lora_alpha: 2 * rank,
    lora_dropout: 0,
    bias: 'none',
    target_modules: ['q_proj'],
    modules_to_save: null,
  };
}

async function put(blobs: BlobStore, name: string, bytes: Uint8Array): Promise<WeightsFile> {
  return { name, digest: await blobs.put(bytes), bytes: bytes.byteLength };
}
