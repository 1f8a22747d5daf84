// How long conversations and samples may be where a base model is served and trained. In: its shape and size, and the memory that
// may be taken. Out: bounds in tokens, with the reasons for them. Pure arithmetic.

/** What `config.json` says of a model. */
export interface ModelShape {
  readonly max_position_embeddings: number;
  readonly hidden_size: number;
  readonly intermediate_size: number;
  readonly num_hidden_layers: number;
  readonly num_attention_heads: number;
  readonly num_key_value_heads?: number | undefined;
  readonly head_dim?: number | null | undefined;
}

/** Memory that may be taken, and what is done with it. */
export interface Room {
  /** Of this machine. */
  readonly freeBytes: number;
  /** Of the card that steps compute on, and of one number there; left out: steps compute in the machine's own, in float32. */
  readonly card?: { readonly freeBytes: number; readonly numberBytes: number } | undefined;
  /** Of an engine elsewhere, which keeps its weights, keys and values itself; 0: it does not say. Left out: it runs here. */
  readonly engineContext?: number | undefined;
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

/** A prompt with its lessons, and an answer. */
export const contextMin = 1_024;
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

export const headWidth = ({ head_dim: width, hidden_size: hidden, num_attention_heads: heads }: ModelShape) =>
  width ?? Math.floor(hidden / heads);

/** Keys and values of one position, in float32. */
function positionBytes(shape: ModelShape): number {
  const { num_attention_heads: heads, num_key_value_heads: keyHeads = heads } = shape;
  return 2 * shape.num_hidden_layers * keyHeads * headWidth(shape) * floatBytes;
}

/**
 * What a step holds for each token of its longest sample: the input of every layer, and one layer at a time with all that it
 * computes and the gradients of that (services/worker/README.md has it measured, in float32).
 */
function stepBytes(
  { hidden_size: hidden, intermediate_size: inner, num_hidden_layers: layers }: ModelShape,
  room: Room,
) {
  return (room.card?.numberBytes ?? floatBytes) * (layers * hidden + layerHiddens * hidden + layerInners * inner);
}
const layerHiddens = 16;
const layerInners = 7;

/** The weights stand in the engine, where it runs here, and in the training worker. */
function weightBytes(parameters: number, { card, engineContext }: Room) {
  const copies = (engineContext === undefined ? 1 : 0) + (card === undefined ? 1 : 0);
  return { machine: copies * parameters * floatBytes, card: parameters * (card?.numberBytes ?? 0) };
}

/** Half of the memory that weights leave goes to the engine's keys and values at most, the rest to a step. */
export function tokenBounds(shape: ModelShape, parameters: number, room: Room): Bounds {
  const { freeBytes, card, engineContext } = room;
  const positions = shape.max_position_embeddings;
  const weights = weightBytes(parameters, room);
  const left = Math.max(0, freeBytes - otherBytes - weights.machine);
  const ofCard = Math.max(0, (card?.freeBytes ?? 0) - weights.card);
  const samplesOf = (contextTokens: number, kvBytes: number) => {
    const affordable = Math.floor((card === undefined ? left - kvBytes : ofCard) / stepBytes(shape, room));
    return Math.min(contextTokens, card === undefined ? sampleMax.machine : sampleMax.card, affordable);
  };
  if (engineContext !== undefined) {
    const contextTokens = Math.min(positions, engineContext === 0 ? positions : engineContext);
    return { contextTokens, kvTokens: 0, kvBytes: 0, sampleTokens: samplesOf(contextTokens, 0) };
  }
  const kvAffordable = Math.floor(left / 2 / positionBytes(shape));
  const contextTokens = Math.min(positions, contextMax, kvAffordable);
  const kvTokens = Math.max(contextTokens, Math.min(kvTokensLeast, kvAffordable));
  const kvBytes = kvTokens * positionBytes(shape);
  return { contextTokens, kvTokens, kvBytes, sampleTokens: samplesOf(contextTokens, kvBytes) };
}

/** Why the shortest context cannot be served and trained; undefined where it can. */
export function memoryShort(shape: ModelShape, parameters: number, room: Room): string | undefined {
  const { contextTokens, sampleTokens } = tokenBounds(shape, parameters, room);
  if (contextTokens >= contextMin && sampleTokens >= contextMin) return undefined;
  const { freeBytes, card, engineContext } = room;
  const weights = weightBytes(parameters, room);
  const onCard = weights.card + contextMin * stepBytes(shape, room);
  if (card !== undefined && card.freeBytes < onCard)
    return `a step needs ${gigabytes(onCard)} of the card's memory, and ${gigabytes(card.freeBytes)} are free (--device cpu computes in this machine's)`;
  const kv = engineContext === undefined ? positionBytes(shape) : 0;
  const each = Math.max(2 * kv, kv + (card === undefined ? stepBytes(shape, room) : 0));
  const needed = otherBytes + weights.machine + contextMin * each;
  return `it needs ${gigabytes(needed)} of memory, and ${gigabytes(freeBytes)} are free`;
}

/** What was chosen, and why. */
export function reasonsOfBounds(shape: ModelShape, parameters: number, bounds: Bounds, room: Room) {
  const { contextTokens, kvBytes, sampleTokens } = bounds;
  const positions = shape.max_position_embeddings;
  const whose =
    contextTokens < positions ? `of ${String(positions)}: ${contextBound(contextTokens, room)}` : "the model's own";
  return {
    context: `${String(contextTokens)} tokens (${whose})`,
    samples: `up to ${String(sampleTokens)} tokens (${sampleBound(bounds, room)})`,
    memory: memoryOf(parameters, kvBytes, sampleTokens * stepBytes(shape, room), room),
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

function memoryOf(parameters: number, kvBytes: number, bytesOfStep: number, room: Room): string {
  const { card, engineContext } = room;
  const weights = weightBytes(parameters, room);
  const step = `a step ${gigabytes(bytesOfStep)}`;
  const times = card === undefined && engineContext === undefined ? 'weights twice' : 'weights';
  const parts = [
    ...(weights.machine === 0 ? [] : [`${times} in float32 ${gigabytes(weights.machine)}`]),
    ...(engineContext === undefined ? [`keys and values ${gigabytes(kvBytes)}`] : []),
    ...(card === undefined ? [step] : []),
    `all else ${gigabytes(otherBytes)}`,
    ...(card === undefined ? [] : [`on the card weights ${gigabytes(weights.card)} and ${step}`]),
  ];
  return parts.join(', ');
}

const gigabytes = (bytes: number) => `${(bytes / 1e9).toFixed(1)} GB`;
