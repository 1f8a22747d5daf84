// What runs on which card of one machine, with how much of its memory, and why. In: cards, base model, judge's model and what the
// launch variables say. Out: engines and training with their cards, shares, contexts and reasons; or one line that says what does
// not fit, and what to do. Pure: memory is reckoned as `backtalk fit` does, whose allowances no card has confirmed.
import {
  bytesOfCard,
  contextMin,
  engineParts,
  gigabytes,
  positionBytes,
  processBytes,
  servingParts,
  splitsOf,
  sumOf,
  tokenBounds,
  trainingParts,
  usableShare,
  type ModelConfig,
  type Quantization,
} from '@backtalk/kit';
import type { Card } from './box-cards.js';
import { seatsOf, type Seats } from './box-seats.js';
import type { BoxSaid } from './box-variables.js';
import { deployErrors } from './errors.js';
import { adaptersAtOnce } from './vllm-program.js';

export interface PlannedModel {
  /** As engines serve it. */
  readonly name: string;
  readonly folder: string;
  readonly shape: ModelConfig;
  readonly parameters: number;
}

export interface BoxWanted {
  readonly cards: readonly Card[];
  readonly said: BoxSaid;
  readonly model: PlannedModel;
  /** Left out: the serving engine judges, unless PRM_GPUS gives the base model an engine of its own for that. */
  readonly judge?: PlannedModel | undefined;
  /** Of the adapters that are trained. */
  readonly rank: number;
  readonly policies: number;
  readonly trainsOnCard: boolean;
  /** Of the model that serves and trains. */
  readonly quantization?: Quantization | undefined;
  /** Serving engines at most; as many as ports are kept for when left out. */
  readonly enginesMax?: number | undefined;
}

export interface PlannedEngine {
  /** Of its process. */
  readonly name: string;
  readonly model: Pick<PlannedModel, 'name' | 'folder'>;
  /** Their indexes; it is split over all of them. */
  readonly cards: readonly number[];
  /** Of each card's memory, as --gpu-memory-utilization has it. */
  readonly share: number;
  /** The same in bytes, of its smallest card. */
  readonly bytes: number;
  readonly contextTokens: number;
  /** Of full length, whose keys and values stand at once. */
  readonly conversations: number;
}

export interface PlannedTraining {
  /** A process on each; they take each step together. */
  readonly cards: readonly number[];
  /** Of each card. */
  readonly bytes: number;
  /** Of its smallest card, for weights, optimiser and the longest sample. */
  readonly roomBytes: number;
  readonly sampleTokens: number;
}

export interface BoxPlan {
  /** One, or several equal ones. */
  readonly engines: readonly PlannedEngine[];
  /** Undefined: the serving engines judge. */
  readonly judge: PlannedEngine | undefined;
  /** Undefined: steps compute on the CPU. */
  readonly training: PlannedTraining | undefined;
  readonly idle: readonly number[];
  readonly reasons: readonly (readonly [string, string])[];
}

/** Longer ones are served where CONTEXT_LENGTH asks for them. */
const contextUsual = 32_768;
const numberBytes = 2;
/** An engine of the judge's own reads one conversation at a time at the least. */
const oneConversation = 1;
/** Beside them each loader has a lease, and a port. */
const enginesMax = 8;

const usable = ({ bytes }: Card) => usableShare * bytes;
const least = (cards: readonly Card[]) => Math.min(...cards.map(usable));
const indexes = (cards: readonly Card[]) => cards.map(({ index }) => index);

export function boxPlan(wanted: BoxWanted): BoxPlan {
  const { said, judge, model } = wanted;
  const judges = judge ?? ((said.PRM_GPUS ?? 0) > 0 ? model : undefined);
  const needs = { ...wanted, judgeCards: judges === undefined ? 0 : fewestCards(judges, wanted.cards) };
  const seats = seatsOf(needs);
  const splits = servingSplits(wanted, seats);
  let why = '';
  for (const contextTokens of contextsOf(wanted)) {
    for (const split of splits) {
      const placed = place({ wanted, seats, judges, contextTokens, split });
      if (typeof placed !== 'string') return placed;
      // What was tried last asks for least: where not even that fits, its reason is the one to act on.
      why = placed;
    }
  }
  throw deployErrors.boxRefused({ why });
}

function contextsOf({ said, model }: BoxWanted): readonly number[] {
  const positions = model.shape.max_position_embeddings;
  const { CONTEXT_LENGTH: asked } = said;
  if (asked !== undefined && asked > positions)
    throw deployErrors.boxRefused({ why: `CONTEXT_LENGTH=${asked}, and ${model.name} has ${positions} positions` });
  if (asked !== undefined) return [asked];
  const most = Math.min(positions, contextUsual);
  return [most, 16_384, 8_192, 4_096, 2_048, contextMin].filter((tokens, at) => at === 0 || tokens < most);
}

/** Over how many cards each serving engine is split, the fewest first. */
function servingSplits({ said, model }: BoxWanted, { serving }: Seats): readonly number[] {
  const { TP: asked, ROLLOUT_GPUS: rollout } = said;
  const { num_attention_heads: heads } = model.shape;
  if (asked === undefined)
    return splitsOf(model.shape).filter(
      (split) => split <= serving.length && (rollout === undefined || serving.length % split === 0),
    );
  if (heads % asked !== 0)
    throw deployErrors.boxRefused({ why: `TP=${asked} does not divide the ${heads} attention heads of ${model.name}` });
  if (asked > serving.length || (rollout !== undefined && rollout % asked !== 0)) {
    const whose = rollout === undefined ? `${serving.length} are left to serve` : `ROLLOUT_GPUS is ${rollout}`;
    throw deployErrors.boxRefused({ why: `TP=${asked} cards an engine, and ${whose}: TP has to divide them` });
  }
  return [asked];
}

function fewestCards(judge: PlannedModel, cards: readonly Card[]): number {
  const bytes = sumOf(engineParts(judge.shape, judge.parameters, judgeReads(judge, contextUsual)));
  const splits = splitsOf(judge.shape);
  return splits.find((split) => bytesOfCard(bytes, split) <= least(cards)) ?? splits.at(-1) ?? 1;
}

const judgeReads = ({ shape }: PlannedModel, contextTokens: number) => ({
  contextTokens: Math.min(contextTokens, shape.max_position_embeddings),
  conversations: oneConversation,
});

interface Trial {
  readonly wanted: BoxWanted;
  readonly seats: Seats;
  readonly judges: PlannedModel | undefined;
  readonly contextTokens: number;
  /** Cards of each serving engine. */
  readonly split: number;
}

/** The plan; or why there is none. */
function place(trial: Trial): BoxPlan | string {
  const { wanted, seats, judges, split } = trial;
  const groups = groupsOf(seats.serving, split, wanted.enginesMax);
  const last = groups.at(-1) ?? [];
  const shared = last.at(-1);
  const leastBytes = bytesOfCard(leastOfServing(trial), split);
  const crowded = leastBytes > Math.min(...groups.map(least));
  if (crowded) return tooLarge(wanted.model, leastBytes, split, Math.min(...groups.map(least)), trial);
  const judge = judges === undefined ? undefined : placeJudge(trial, judges, shared);
  if (typeof judge === 'string') return judge;
  const besideJudge = judge?.shares === true ? judge.bytes : 0;
  const training = placeTraining(trial, shared, leastBytes + besideJudge);
  if (typeof training === 'string') return training;
  const taken = besideJudge + (seats.training.length === 0 ? (training?.bytes ?? 0) : 0);
  const engines = groups.map((cards, at) => servingEngine(trial, cards, at, cards === last ? taken : 0));
  const cramped = engines.find(({ bytes }) => bytes < leastBytes);
  if (cramped !== undefined)
    return wanted.said.MEM_FRACTION_STATIC === undefined
      ? tooLarge(wanted.model, leastBytes, split, cramped.bytes, trial)
      : `MEM_FRACTION_STATIC=${wanted.said.MEM_FRACTION_STATIC} leaves ${gigabytes(cramped.bytes)} of a card, and ${wanted.model.name} needs ${gigabytes(leastBytes)}`;
  return planOf(trial, { engines, judge: judge?.engine, training });
}

function groupsOf(cards: readonly Card[], split: number, most = enginesMax): readonly (readonly Card[])[] {
  const count = Math.min(most, Math.floor(cards.length / split));
  return Array.from({ length: count }, (_, at) => cards.slice(at * split, (at + 1) * split));
}

function leastOfServing({ wanted, contextTokens }: Trial): number {
  const { model, rank, policies, quantization } = wanted;
  const asked = { contextTokens, conversations: 1, rank, versions: adaptersAtOnce(policies), quantization };
  return sumOf(servingParts(model.shape, model.parameters, asked));
}

function tooLarge(model: PlannedModel, bytes: number, split: number, room: number, trial: Trial): string {
  const { wanted, contextTokens } = trial;
  const each = split === 1 ? 'a card' : `each of ${split} cards`;
  return `${model.name} with a context of ${contextTokens} tokens needs ${gigabytes(bytes)} of ${each}, and ${gigabytes(room)} can be used: give it more cards (ROLLOUT_GPUS, TP),${lower(wanted.said)} or a smaller HF_CKPT`;
}

/** Where it was not said, lower ones were tried. */
const lower = ({ CONTEXT_LENGTH: asked = contextMin }: BoxSaid) =>
  asked > contextMin ? ' a lower CONTEXT_LENGTH,' : '';

interface PlacedJudge {
  readonly engine: PlannedEngine;
  readonly bytes: number;
  /** Whether it stands on the last serving card. */
  readonly shares: boolean;
}

function placeJudge(
  { wanted, seats, contextTokens }: Trial,
  judges: PlannedModel,
  shared: Card | undefined,
): PlacedJudge | string {
  const reads = judgeReads(judges, contextTokens);
  const needed = sumOf(engineParts(judges.shape, judges.parameters, reads));
  const shares = seats.judge.length === 0;
  const places = shares && shared !== undefined ? [shared] : seats.judge;
  const split = splitsOf(judges.shape).findLast((count) => count <= places.length) ?? 1;
  const cards = places.slice(0, split);
  const bytes = bytesOfCard(needed, split);
  const room = least(cards);
  if (bytes > room)
    return `${judges.name}, which judges, needs ${gigabytes(bytes)} of ${split === 1 ? 'a card' : `each of ${split} cards`}, and ${gigabytes(room)} can be used: PRM_GPUS=${2 * Math.max(1, split)}, or a smaller PRM_MODEL_PATH`;
  const smallest = Math.min(...cards.map((card) => card.bytes));
  const share = shares ? roundedUp(bytes / smallest) : cappedShare(usableShare, wanted.said);
  const more = (share * smallest - bytes) * split;
  const engine = {
    name: 'judge-engine',
    model: { name: judges.name, folder: judges.folder },
    cards: indexes(cards),
    share,
    bytes: share * smallest,
    contextTokens: reads.contextTokens,
    conversations: oneConversation + conversationsIn(judges.shape, more, reads.contextTokens),
  };
  return { engine, bytes: engine.bytes, shares };
}

/** @param beside bytes that others need of the card that training would share */
function placeTraining(
  { wanted, seats, contextTokens }: Trial,
  shared: Card | undefined,
  beside: number,
): PlannedTraining | undefined | string {
  const { model, rank, trainsOnCard, quantization } = wanted;
  if (!trainsOnCard) return undefined;
  const isAlone = seats.training.length > 0;
  const cards = isAlone || shared === undefined ? seats.training : [shared];
  if (cards.length === 0) return undefined;
  const roomBytes = least(cards) - (isAlone ? 0 : beside) - processBytes;
  const room = {
    freeBytes: Infinity,
    card: { freeBytes: Math.max(0, roomBytes), numberBytes },
    engineContext: contextTokens,
    quantization,
  };
  const { sampleTokens } = tokenBounds(model.shape, model.parameters, room);
  // On a shared card a shorter context leaves room for samples that hold most of what is served.
  const wantedTokens = isAlone ? contextMin : Math.max(contextMin, Math.floor(contextTokens / 2));
  const longest = Math.max(sampleTokens, wantedTokens);
  const bytes = sumOf(trainingParts(model.shape, model.parameters, { rank, sampleTokens: longest, quantization }));
  if (sampleTokens >= wantedTokens) return { cards: indexes(cards), bytes, roomBytes, sampleTokens };
  const free = gigabytes(Math.max(0, roomBytes + processBytes));
  const how = isAlone ? 'on a card of its own' : 'on a card that it shares';
  const instead = isAlone
    ? 'a larger card,'
    : `a card of its own (NUM_GPUS=2 or more, ACTOR_GPUS=1),${lower(wanted.said)}`;
  return `a step of ${model.name} with samples of ${wantedTokens} tokens needs ${gigabytes(bytes)} ${how}, where ${free} are left: give it ${instead} or a smaller HF_CKPT`;
}

/** @param taken of one of its cards, by others */
function servingEngine(trial: Trial, cards: readonly Card[], at: number, taken: number): PlannedEngine {
  const { wanted, contextTokens, split } = trial;
  const { model, said } = wanted;
  const smallest = Math.min(...cards.map(({ bytes }) => bytes));
  const last = cards.at(-1);
  const beside = last === undefined ? 0 : taken / last.bytes;
  const share = cappedShare(usableShare - beside, said);
  const bytes = share * smallest;
  const more = (bytes - bytesOfCard(leastOfServing(trial), split)) * split;
  return {
    name: at === 0 ? 'engine' : `engine-${at + 1}`,
    model: { name: model.name, folder: model.folder },
    cards: indexes(cards),
    share,
    bytes,
    contextTokens,
    conversations: 1 + conversationsIn(model.shape, more, contextTokens),
  };
}

const conversationsIn = (shape: ModelConfig, bytes: number, contextTokens: number) =>
  Math.max(0, Math.floor(bytes / (contextTokens * positionBytes(shape, numberBytes))));

const thousandths = 1_000;
const roundedUp = (share: number) => Math.ceil(share * thousandths) / thousandths;

/** Rounded down, so that what shares a card with it keeps its part. */
function cappedShare(share: number, { MEM_FRACTION_STATIC: most = 1 }: BoxSaid): number {
  return Math.floor(Math.min(share, most) * thousandths) / thousandths;
}

type Placed = Pick<BoxPlan, 'engines' | 'judge' | 'training'>;

function planOf(trial: Trial, placed: Placed): BoxPlan {
  const { seats } = trial;
  const { engines, judge, training } = placed;
  const used = new Set([...engines, judge, training].flatMap((one) => one?.cards ?? []));
  const all = [...seats.serving, ...seats.judge, ...seats.training, ...seats.idle];
  const idle = indexes(all).filter((card) => !used.has(card));
  const reasons: readonly (readonly [string, string])[] = [
    ['serving', reasonOfServing(trial, placed)],
    ['context', reasonOfContext(trial, placed)],
    ['judge', reasonOfJudge(trial, placed)],
    ['training', reasonOfTraining(trial, placed)],
    ...(idle.length === 0 ? [] : ([['idle', reasonOfIdle(idle)]] as const)),
  ];
  return { ...placed, idle, reasons };
}

function reasonOfServing({ wanted, split, seats }: Trial, { engines }: Placed): string {
  const { said } = wanted;
  const isOne = engines.length === 1;
  const count = isOne ? 'one engine' : `${engines.length} equal engines`;
  const each = isOne ? '' : ' each';
  const over = split === 1 ? `on a card${each}` : `${isOne ? '' : 'each '}split over ${split} cards`;
  const whySplit = said.TP === undefined ? 'as few cards as hold the model' : `TP=${said.TP}`;
  const whyCards =
    said.ROLLOUT_GPUS === undefined
      ? `what the others leave of ${seatsTotal(seats)}`
      : `ROLLOUT_GPUS=${said.ROLLOUT_GPUS}`;
  const most = said.MEM_FRACTION_STATIC === undefined ? '' : `; MEM_FRACTION_STATIC=${said.MEM_FRACTION_STATIC}`;
  return `${count} ${over} (${whySplit}; ${whyCards}${most})`;
}

const seatsTotal = ({ serving, judge, training, idle }: Seats) =>
  serving.length + judge.length + training.length + idle.length;

function reasonOfContext({ wanted, contextTokens }: Trial, { engines: [engine] }: Placed): string {
  const { said, model } = wanted;
  const positions = model.shape.max_position_embeddings;
  const usual = Math.min(positions, contextUsual);
  const held = `${contextTokens} tokens, ${engine?.conversations ?? 0} such conversations at once in an engine`;
  if (said.CONTEXT_LENGTH !== undefined) return `${held} (CONTEXT_LENGTH)`;
  if (contextTokens < usual) return `${held} (of ${usual}: memory)`;
  return `${held} (${contextTokens === positions ? "the model's own" : `of ${positions}: CONTEXT_LENGTH takes more`})`;
}

function reasonOfJudge({ wanted, seats }: Trial, { judge }: Placed): string {
  if (judge === undefined)
    return 'the serving engines vote in words (PRM_MODEL_PATH names another model, PRM_GPUS gives it cards)';
  const { said } = wanted;
  if (seats.judge.length === 0)
    return `${judge.model.name} beside the serving engine, on card ${judge.cards.join(', ')} (no card is left, or PRM_GPUS=0)`;
  const why = said.PRM_GPUS === undefined ? 'as few cards as hold it' : `PRM_GPUS=${said.PRM_GPUS}`;
  return `${judge.model.name} in an engine of its own (${why})`;
}

function reasonOfTraining({ wanted, seats }: Trial, { training }: Placed): string {
  if (training === undefined) return 'on the CPU (--device cpu)';
  const samples = `samples up to ${training.sampleTokens} tokens`;
  const on = training.cards.join(', ');
  if (seats.training.length === 0) return `shares card ${on} with serving, ${samples}`;
  const { ACTOR_GPUS: actor } = wanted.said;
  if (actor === undefined) return `card ${on}, ${samples} (ACTOR_GPUS takes more)`;
  return training.cards.length === 1
    ? `card ${on}, ${samples} (ACTOR_GPUS=1)`
    : `cards ${on} take each step together, a process on each, ${samples} (ACTOR_GPUS=${actor})`;
}

const reasonOfIdle = (idle: readonly number[]) =>
  `cards ${idle.join(', ')}: none of ROLLOUT_GPUS, PRM_GPUS, ACTOR_GPUS and TP takes them`;
