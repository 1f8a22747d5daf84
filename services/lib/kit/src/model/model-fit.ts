// What serving, judging and training a model take of cards, and on how many of them it goes. In: its shape, and what is asked of it.
// Out: bytes by part, each split that fits, and the longest sample that a step can take. Pure arithmetic on that of model-memory;
// what engines keep for themselves is an allowance, which no card has measured.
import { adapterParameters, contextMin, type ModelConfig } from './model-config.js';
import {
  positionBytes,
  sampleBytes,
  sampleTokensIn,
  stepBytes,
  weightsBytes,
  type Quantization,
} from './model-memory.js';

export interface Wanted {
  /** Of each card. */
  readonly cardBytes: number;
  /** Tokens of prompt and answer together. */
  readonly contextTokens: number;
  /** Of full length, whose keys and values stand at once. */
  readonly conversations: number;
  readonly rank: number;
  /** The recipe's longest. */
  readonly sampleTokens: number;
  /** Adapters that an engine computes with at once, as --max-loras has it. */
  readonly versions: number;
  /** Of the model that serves and trains; the one that judges is whole. */
  readonly quantization?: Quantization | undefined;
}

/** Bytes by what they are for. */
export type Parts = Readonly<Record<string, number>>;

export interface Placement {
  readonly name: string;
  readonly cards: number;
  /** Bytes of the fullest card. */
  readonly bytes: number;
  /** shorter: with samples up to `sampleTokens` alone, which are fewer than was asked for. */
  readonly fits: 'yes' | 'shorter' | 'no';
  /** Longest sample of a step there; 0: none. */
  readonly sampleTokens: number;
}

export interface Fit {
  readonly serving: Parts;
  readonly judge: Parts;
  readonly training: Parts;
  readonly placements: readonly Placement[];
}

/** bfloat16, in which engines and training compute on cards. */
const numberBytes = 2;
/** Its graphs, its buffers and what it computes of a prompt. */
const engineBytes = 2e9;
/** Of CUDA and of torch's libraries, for each process. */
export const processBytes = 0.8e9;
/** The rest is lost to what lies between blocks. */
export const usableShare = 0.92;

export const sumOf = (parts: Parts) => Object.values(parts).reduce((total, bytes) => total + bytes, 0);

/**
 * @param parameters of the model
 * @param judge the model that judges; it serves no versions
 */
export function fitOf(shape: ModelConfig, parameters: number, judge: Judge, wanted: Wanted): Fit {
  const serving = servingParts(shape, parameters, wanted);
  const { contextTokens, conversations } = wanted;
  const judging = engineParts(judge.shape, judge.parameters, { contextTokens, conversations });
  const training = trainingParts(shape, parameters, wanted);
  const usable = usableShare * wanted.cardBytes;
  const engine = splitOver(shape, sumOf(serving), usable);
  const ofJudge = splitOver(judge.shape, sumOf(judging), usable);
  const placement = (name: string, cards: number, others: number, besideTraining: number): Placement => {
    const left = usable - besideTraining - sumOf(training) + (training[sampleName] ?? 0);
    const sampleTokens = Math.min(wanted.contextTokens, sampleTokensIn(shape, left, numberBytes));
    const bytes = Math.max(others, besideTraining + sumOf(training));
    const isShort = others <= usable && sampleTokens >= contextMin;
    const fits = bytes <= usable ? 'yes' : isShort ? 'shorter' : 'no';
    return { name, cards, bytes, fits, sampleTokens: fits === 'no' ? 0 : sampleTokens };
  };
  const { cards, bytes } = engine;
  const fullest = Math.max(bytes, ofJudge.bytes);
  return {
    serving,
    judge: judging,
    training,
    placements: [
      placement('one card serves, judges with the same engine, and trains', 1, sumOf(serving), sumOf(serving)),
      placement('one engine serves and judges; training has a card of its own', cards + 1, bytes, 0),
      placement('serving, judge and training have cards of their own', cards + ofJudge.cards + 1, fullest, 0),
    ],
  };
}

export interface Judge {
  readonly shape: ModelConfig;
  readonly parameters: number;
}

const sampleName = 'activations of the longest sample';

/** Of an engine that serves no versions. */
export function engineParts(
  shape: ModelConfig,
  parameters: number,
  { contextTokens, conversations, quantization }: Pick<Wanted, 'contextTokens' | 'conversations' | 'quantization'>,
): Parts {
  return {
    weights: weightsBytes(shape, parameters, numberBytes, quantization),
    'keys and values': conversations * contextTokens * positionBytes(shape, numberBytes),
    'the engine itself': engineBytes,
  };
}

export function servingParts(
  shape: ModelConfig,
  parameters: number,
  wanted: Omit<Wanted, 'cardBytes' | 'sampleTokens'>,
): Parts {
  const adapters = wanted.versions * numberBytes * adapterParameters(shape, wanted.rank);
  return { ...engineParts(shape, parameters, wanted), adapters };
}

export function trainingParts(
  shape: ModelConfig,
  parameters: number,
  { rank, sampleTokens, quantization }: Pick<Wanted, 'rank' | 'sampleTokens' | 'quantization'>,
): Parts {
  return {
    weights: weightsBytes(shape, parameters, numberBytes, quantization),
    'adapter, optimiser and logits': stepBytes(shape, rank),
    [sampleName]: sampleBytes(shape, sampleTokens, numberBytes),
    'the process itself': processBytes,
  };
}

const cardsMost = 8;

/** Over how many cards one engine can be split: their number divides the heads. */
export const splitsOf = ({ num_attention_heads: heads }: ModelConfig) =>
  [1, 2, 4, cardsMost].filter((cards) => heads % cards === 0);

/** Of each card of an engine that is split over so many. */
export const bytesOfCard = (bytes: number, cards: number) => engineBytes + (bytes - engineBytes) / cards;

/** An engine on the fewest cards that hold it and whose number divides the heads, or on the most. */
function splitOver(shape: ModelConfig, bytes: number, usable: number) {
  const splits = splitsOf(shape).map((cards) => ({ cards, bytes: bytesOfCard(bytes, cards) }));
  return splits.find((split) => split.bytes <= usable) ?? splits.at(-1) ?? { cards: 1, bytes };
}
