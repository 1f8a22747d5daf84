// How vLLM is run here, with adapters by name: the build for CPU that the set-up installs in an environment of its own, or the
// operator's own one on cards. In: the installation's root, a model, a port and bounds. Out: command, arguments and environment;
// starts nothing. What the chart and Compose give to vLLM on GPUs has the same flags for swaps, which a test compares.
import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import type { Quantization } from '@backtalk/kit';

const venvOf = (root: string) => join(root, '.venv', 'engines', 'vllm-0.32');

/** The set-up writes its stamp last. */
export const isVllmInstalled = (root: string) => existsSync(join(venvOf(root), 'installed'));

export const vllmCommand = (root: string) => join(venvOf(root), 'bin', 'python');

export interface VllmStart {
  readonly model: string;
  readonly baseModel: string;
  readonly port: number | string;
  /** Tokens of prompt and answer together; 0: the model's own. */
  readonly lengthMax: number;
  readonly rank: number;
  readonly policies: number;
  /** Which calls it reads out of answers. */
  readonly toolParser: string;
}

/** Layers that adapters change. Without the list vLLM also wraps the head, and on CPU scores asked for beside answers then end it. */
export const adaptedLayers = ['q_proj', 'k_proj', 'v_proj', 'o_proj', 'gate_proj', 'up_proj', 'down_proj'];

/** What swaps need wherever vLLM runs; how many adapters, and of which rank, is each place's own. */
export const swapFlags = [
  '--enable-lora',
  '--logprobs-mode=processed_logprobs',
  '--lora-target-modules',
  ...adaptedLayers,
];
export const swapEnvironment = { VLLM_ALLOW_RUNTIME_LORA_UPDATING: 'True' };

export function vllmArguments(start: VllmStart): string[] {
  return [
    ...['-m', 'vllm.entrypoints.openai.api_server', `--model=${start.model}`, ...servedAs(start)],
    ...['--dtype=float32', '--enforce-eager'],
    ...adapterFlags(start, start.rank),
    ...toolFlags(start),
  ];
}

/** Of one engine on cards. */
export interface VllmOnCards extends VllmStart {
  /** Cards that it is split over. */
  readonly split: number;
  /** Of each card's memory. */
  readonly share: number;
  readonly quantization?: Quantization | undefined;
}

/** The operator's own program; the set-up installs none for cards. */
export const vllmOnCards = (environment: Readonly<Record<string, string>>) => environment['BACKTALK_VLLM'] ?? 'vllm';

/** On cards vLLM takes these ranks alone. */
const ranksOnCards = [8, 16, 32, 64, 128, 256, 320, 512];
export const rankServed = (rank: number) => ranksOnCards.find((taken) => taken >= rank) ?? rank;

/** @param adapters false: of an engine that judges alone */
export function vllmArgumentsOnCards(start: VllmOnCards, adapters = true): string[] {
  const { model, split, share, rank, quantization = 'none' } = start;
  return [
    ...['serve', model, ...servedAs(start), '--dtype=bfloat16'],
    ...[`--tensor-parallel-size=${String(split)}`, `--gpu-memory-utilization=${String(share)}`],
    // A judge of its own is whole. vLLM quantises as the training worker does: NormalFloat, with quantised scales.
    ...(adapters && quantization === 'nf4' ? ['--quantization=bitsandbytes'] : []),
    ...(adapters ? adapterFlags(start, rankServed(rank)) : []),
    ...(adapters ? toolFlags(start) : []),
  ];
}

function servedAs({ baseModel, port, lengthMax }: VllmStart): string[] {
  return [
    ...[`--served-model-name=${baseModel}`, '--host=127.0.0.1', `--port=${String(port)}`, '--shutdown-timeout=3'],
    ...(lengthMax === 0 ? [] : [`--max-model-len=${String(lengthMax)}`]),
  ];
}

/** Stable, previous and candidate, and one that is on its way out. */
export const adaptersAtOnce = (policies: number) => 4 * policies;
/** In the machine's own memory, for a card that has no room for them. */
export const adaptersKept = (policies: number) => 8 * policies;

function adapterFlags({ policies }: VllmStart, rankMax: number): string[] {
  return [
    ...swapFlags,
    // Of the policy's rank and no higher: on CPU vLLM pads every adapter to the highest one, and copies it for every token of a
    // prompt.
    ...[`--max-loras=${String(adaptersAtOnce(policies))}`, `--max-cpu-loras=${String(adaptersKept(policies))}`],
    `--max-lora-rank=${String(rankMax)}`,
  ];
}

/** Without them it refuses each request that has tools. */
const toolFlags = ({ toolParser }: VllmStart) => ['--enable-auto-tool-choice', `--tool-call-parser=${toolParser}`];

const gibibyte = 1024 ** 3;
/** Enough for the laptop's model with its whole context, twice. */
const kvBytesDefault = gibibyte;

/** Not as an argument, the key: these stand in the machine's list of processes. */
const quietly = (key: string) => ({ VLLM_API_KEY: key, VLLM_NO_USAGE_STATS: '1', DO_NOT_TRACK: '1' });

/** Cards by the numbers that nvidia-smi gives them. */
export const onlyCards = (cards: readonly number[]) => ({
  CUDA_DEVICE_ORDER: 'PCI_BUS_ID',
  CUDA_VISIBLE_DEVICES: cards.join(','),
});

/** A training process on each, which take every step together. */
export const trainingOnCards = (cards: readonly number[]) => ({
  ...onlyCards(cards),
  BACKTALK_TRAINING_PROCESSES: String(cards.length),
});

/** @param adapters false: of an engine that judges alone */
export function vllmEnvironmentOnCards(key: string, cards: readonly number[], adapters = true) {
  return { ...(adapters ? swapEnvironment : {}), ...quietly(key), ...onlyCards(cards) };
}

export function vllmEnvironment(key: string, kvBytes = kvBytesDefault): Readonly<Record<string, string>> {
  return {
    ...swapEnvironment,
    ...quietly(key),
    VLLM_CPU_KVCACHE_SPACE: String(Math.max(1, Math.ceil(kvBytes / gibibyte))),
    // The training worker has one; vLLM would bind its own to the first cores, where others work, too.
    OMP_NUM_THREADS: String(Math.max(1, availableParallelism() - 1)),
    VLLM_CPU_OMP_THREADS_BIND: 'nobind',
  };
}

/** vLLM's names of the formats that a template writes calls in; of a model that writes none, no call is ever found. */
const toolParsers: Readonly<Record<string, string>> = { hermes: 'hermes', llama: 'llama3_json', mistral: 'mistral' };

/** @param answers what was found of the model's chat template: "calls as hermes (…)" */
export const toolParserOf = (answers: string) => toolParsers[/^calls as (\w+)/.exec(answers)?.[1] ?? ''] ?? 'hermes';
