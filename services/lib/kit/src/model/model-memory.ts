// What serving and training a base model take of memory, and how long conversations and samples may be. In: its shape and size, and
// the memory that may be taken. Out: bytes, and bounds in tokens with the reasons for them. Pure arithmetic.
import {
  adapterParameters,
  attentionWidths,
  contextMin,
  largestLinear,
  linearParameters,
  type ModelConfig,
} from './model-config.js';

/** How linear layers but the head hold their numbers: as all others, or in 4 bits each (QLoRA, Dettmers et al. 2023). */
export const quantizations = ['none', 'nf4'] as const;
export type Quantization = (typeof quantizations)[number];

/** Memory that may be taken, and what is done with it. */
export interface Room {
  /** Of this machine. */
  readonly freeBytes: number;
  /** Of the card that steps compute on, and of one number there; left out: steps compute in the machine's own, in float32. */
  readonly card?: { readonly freeBytes: number; readonly numberBytes: number } | undefined;
  /** Of an engine elsewhere, which keeps its weights, keys and values itself; 0: it does not say. Left out: it runs here. */
  readonly engineContext?: number | undefined;
  /** Of the base model, in the engine and for steps. */
  readonly quantization?: Quantization | undefined;
}

export interface Bounds {
  /** Tokens of prompt and answer together. */
  readonly contextTokens: number;
  /** Positions with keys and values that an engine here keeps in memory, of all its answers together. */
  readonly kvTokens: number;
  /** Bytes of these keys and values. */
  readonly kvBytes: number;
  /** Longest sample that a step has memory for. */
  readonly sampleTokens: number;
}

/** On a CPU longer prompts take minutes before their first token. */
const contextMax = 32_768;
/** Enough for several answers at once, where the context is short. */
const kvTokensLeast = 16_384;
/** A step on a longer sample takes longer than people wait for one on a CPU; on a card it is the bound of the recipe `small`. */
const sampleMax = { machine: 16_384, card: 32_768 };
/** Of a number in float32. */
const floatBytes = 4;
/** Servers, services, Python and torch twice. */
const otherBytes = 2e9;

/** Half a byte, and for 64 of them a scale of 8 bits, of which 256 share one of 32. */
const nf4Bytes = 0.5 + (1 + floatBytes / 256) / 64;

/** Of all numbers of a model: embeddings, head and norms are never in 4 bits, and a layer that computes stands in whole numbers. */
export function weightsBytes(
  shape: ModelConfig,
  parameters: number,
  numberBytes: number,
  quantization: Quantization = 'none',
): number {
  if (quantization === 'none') return numberBytes * parameters;
  const quantised = linearParameters(shape);
  return numberBytes * (parameters - quantised + largestLinear(shape)) + nf4Bytes * quantised;
}

/** Keys and values of one position. */
export function positionBytes(shape: ModelConfig, numberBytes: number): number {
  return 2 * shape.num_hidden_layers * attentionWidths(shape).keys * numberBytes;
}

/** All that one layer computes of a token, with the gradients of that: in float32 whatever the base is in, as adapters compute. */
const layerBytes = ({ hidden_size: hidden, intermediate_size: inner }: ModelConfig) =>
  floatBytes * (layerHiddens * hidden + layerInners * inner);
const layerHiddens = 16;
const layerInners = 7;

/** What a step holds for each token of a long sample: the input of every layer, and one layer at a time (npm run bench -- --only long-step). */
const tokenBytes = (shape: ModelConfig, numberBytes: number) =>
  numberBytes * shape.num_hidden_layers * shape.hidden_size + layerBytes(shape);

/** Of a short one: all layers stand at once, without their gradients. */
const shortTokenBytes = (shape: ModelConfig, numberBytes: number) =>
  Math.max(tokenBytes(shape, numberBytes), (shape.num_hidden_layers * layerBytes(shape)) / 2);
/** Where all layers at once would take more, each is computed again: the training worker's KEPT_BYTES_MAX. */
const keptBytesMax = 1.25e9;

/** What a step holds of a sample. */
export function sampleBytes(shape: ModelConfig, tokens: number, numberBytes: number): number {
  const short = Math.min(keptBytesMax, tokens * shortTokenBytes(shape, numberBytes));
  return Math.max(short, tokens * tokenBytes(shape, numberBytes));
}

/** The longest sample that so many bytes hold. */
export function sampleTokensIn(shape: ModelConfig, bytes: number, numberBytes: number): number {
  const isLong = bytes >= keptBytesMax;
  return Math.max(0, Math.floor(bytes / (isLong ? tokenBytes : shortTokenBytes)(shape, numberBytes)));
}

/** Of the adapter: its numbers, their gradient, two moments, what they were before the step and after it, and one of these in making. */
const adapterCopies = 7;
/** Logits of some positions, of policy, teacher and base, with their gradients, and what torch keeps beside. */
const chunksBytes = 0.3e9;

/** What a step holds however long its samples are: adapter and optimiser in float32, and logits, which come in chunks. */
export function stepBytes(shape: ModelConfig, rank: number): number {
  return adapterCopies * floatBytes * adapterParameters(shape, rank) + chunksBytes;
}
/** Of the preset `small`. */
const usualRank = 16;

/** The weights stand in the engine, where it runs here, and in the training worker. */
function weightBytes(shape: ModelConfig, parameters: number, { card, engineContext, quantization }: Room) {
  const copies = (engineContext === undefined ? 1 : 0) + (card === undefined ? 1 : 0);
  const of = (numberBytes: number) => weightsBytes(shape, parameters, numberBytes, quantization);
  return { machine: copies * of(floatBytes), card: card === undefined ? 0 : of(card.numberBytes) };
}

const trainedBytes = ({ card }: Room) => card?.numberBytes ?? floatBytes;

/** A whole step. */
const stepOf = (shape: ModelConfig, tokens: number, room: Room) =>
  stepBytes(shape, usualRank) + sampleBytes(shape, tokens, trainedBytes(room));

/** Half of the memory that weights leave goes to the engine's keys and values at most, the rest to a step. */
export function tokenBounds(shape: ModelConfig, parameters: number, room: Room): Bounds {
  const { freeBytes, card, engineContext } = room;
  const positions = shape.max_position_embeddings;
  const weights = weightBytes(shape, parameters, room);
  const left = Math.max(0, freeBytes - otherBytes - weights.machine);
  const ofCard = Math.max(0, (card?.freeBytes ?? 0) - weights.card);
  const samplesOf = (contextTokens: number, kvBytes: number) => {
    const bytes = (card === undefined ? left - kvBytes : ofCard) - stepBytes(shape, usualRank);
    const affordable = sampleTokensIn(shape, bytes, trainedBytes(room));
    return Math.min(contextTokens, card === undefined ? sampleMax.machine : sampleMax.card, affordable);
  };
  if (engineContext !== undefined) {
    const contextTokens = Math.min(positions, engineContext === 0 ? positions : engineContext);
    return { contextTokens, kvTokens: 0, kvBytes: 0, sampleTokens: samplesOf(contextTokens, 0) };
  }
  const kvAffordable = Math.floor(left / 2 / positionBytes(shape, floatBytes));
  const contextTokens = Math.min(positions, contextMax, kvAffordable);
  const kvTokens = Math.max(contextTokens, Math.min(kvTokensLeast, kvAffordable));
  const kvBytes = kvTokens * positionBytes(shape, floatBytes);
  return { contextTokens, kvTokens, kvBytes, sampleTokens: samplesOf(contextTokens, kvBytes) };
}

/** Why the shortest context cannot be served and trained; undefined where it can. */
export function memoryShort(shape: ModelConfig, parameters: number, room: Room): string | undefined {
  const { contextTokens, sampleTokens } = tokenBounds(shape, parameters, room);
  if (contextTokens >= contextMin && sampleTokens >= contextMin) return undefined;
  const { freeBytes, card, engineContext } = room;
  const weights = weightBytes(shape, parameters, room);
  const step = stepOf(shape, contextMin, room);
  const onCard = weights.card + step;
  if (card !== undefined && card.freeBytes < onCard)
    return `a step needs ${gigabytes(onCard)} of the card's memory, and ${gigabytes(card.freeBytes)} are free (--device cpu computes in this machine's)`;
  const kv = contextMin * (engineContext === undefined ? positionBytes(shape, floatBytes) : 0);
  const needed = otherBytes + weights.machine + Math.max(2 * kv, kv + (card === undefined ? step : 0));
  return `it needs ${gigabytes(needed)} of memory, and ${gigabytes(freeBytes)} are free`;
}

/** What was chosen, and why. */
export function reasonsOfBounds(shape: ModelConfig, parameters: number, bounds: Bounds, room: Room) {
  const { contextTokens, kvBytes, sampleTokens } = bounds;
  const positions = shape.max_position_embeddings;
  const whose =
    contextTokens < positions ? `of ${String(positions)}: ${contextBound(contextTokens, room)}` : "the model's own";
  return {
    context: `${String(contextTokens)} tokens (${whose})`,
    samples: `up to ${String(sampleTokens)} tokens (${sampleBound(bounds, room)})`,
    memory: memoryOf(weightBytes(shape, parameters, room), kvBytes, stepOf(shape, sampleTokens, room), room),
  };
}

function contextBound(contextTokens: number, { engineContext }: Room): string {
  if (engineContext !== undefined) return "the engine's";
  return contextTokens === contextMax ? 'more is slow on a CPU' : 'memory for keys and values';
}

function sampleBound({ sampleTokens, contextTokens }: Bounds, { card }: Room): string {
  if (sampleTokens === contextTokens) return 'the context';
  if (card === undefined && sampleTokens === sampleMax.machine) return 'a step in minutes';
  return card !== undefined && sampleTokens === sampleMax.card ? "the recipe's bound" : 'memory';
}

function memoryOf(
  weights: ReturnType<typeof weightBytes>,
  kvBytes: number,
  bytesOfStep: number,
  { card, engineContext, quantization = 'none' }: Room,
): string {
  const step = `a step ${gigabytes(bytesOfStep)}`;
  const numbers = quantization === 'none' ? 'float32' : '4 bits';
  const times = card === undefined && engineContext === undefined ? 'weights twice' : 'weights';
  const parts = [
    ...(weights.machine === 0 ? [] : [`${times} in ${numbers} ${gigabytes(weights.machine)}`]),
    ...(engineContext === undefined ? [`keys and values ${gigabytes(kvBytes)}`] : []),
    ...(card === undefined ? [step] : []),
    `all else ${gigabytes(otherBytes)}`,
    ...(card === undefined ? [] : [`on the card weights ${gigabytes(weights.card)} and ${step}`]),
  ];
  return parts.join(', ');
}

export const gigabytes = (bytes: number) => `${(bytes / 1e9).toFixed(1)} GB`;
