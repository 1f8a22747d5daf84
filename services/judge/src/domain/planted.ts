// Planted turns: turns whose verdict is known stand among those that are judged, so that a judge that has gone wrong is seen, and stops
// counting. In: what the votes made of them. Out: how often they were right of late, and whether votes count. No text passes on.
import { sha256Hex } from '@backtalk/kit';
import { Provenance, TurnCompleted, TurnContinued } from '@backtalk/proto/facts';
import { z } from 'zod';
import type { Material } from './material.js';
import { readMaterial } from './read-material.js';
import { labels, verdictFrom, type CastVote } from './verdict.js';
import type { Verdict } from './verdict-value.js';

export const plantedTurn = z.object({
  id: z.string(),
  question: z.string(),
  answer: z.string(),
  next: z.string(),
  label: z.enum(labels),
  /** The next state speaks to a judge. */
  injected: z.boolean(),
});
export type PlantedTurn = z.infer<typeof plantedTurn>;

const hashEnd = 2 ** 32;
const prefix = 'planted-';
/** So many of the newest count. */
const windowMax = 40;
/** With fewer, nothing is said of a judge. */
const enough = 20;
/** So many are planted beside every turn at most: a judge whose engine gives no vote says nothing, however many there are. */
const atStartMax = 100;
/** Those that voted last are remembered. */
const modelsMax = 8;

/** The id of the turn that is planted beside this one; the same on every judge, and for most turns none. */
export function plantedBeside(turn: string, share: number, count: number): string | undefined {
  const digest = sha256Hex(`planted/${turn}`);
  if (count === 0 || Number.parseInt(digest.slice(0, 8), 16) >= share * hashEnd) return undefined;
  return `${prefix}${Number.parseInt(digest.slice(8, 16), 16) % count}-${turn}`;
}

/** The planted turn of an id; nothing where this release has none of that number. */
export function plantedOf(turn: string, planted: readonly PlantedTurn[]): PlantedTurn | undefined {
  return planted[Number.parseInt(turn.slice(prefix.length), 10)];
}

export function plantedMaterial({ question, answer, next }: PlantedTurn, turn: string): Material | undefined {
  const spoken = { text: next, provenance: Provenance.PROVENANCE_USER, toolName: '', toolCallId: '', isError: false };
  const continued = TurnContinued.fromPartial({ turn, nextState: [spoken] });
  return readMaterial([{ role: 'user', content: question }], TurnCompleted.fromPartial({ text: answer }), continued);
}

export interface PlantedFigures {
  /** Share of the newest planted turns that were judged right. */
  readonly accuracy: number;
  /** Share of those that speak to a judge and were judged wrong. */
  readonly flips: number;
  /** False once enough were judged and too few of them right. */
  readonly isTrusted: boolean;
}

/** Of one model. */
interface Watch {
  /** Planted turns that were judged, oldest first. */
  readonly judged: { readonly isRight: boolean; readonly injected: boolean }[];
  planted: number;
}

export class PlantedRecord {
  /** By model, that which voted last at the end: one that takes another's place, under whatever address, is watched anew. */
  private readonly watches = new Map<string, Watch>();
  private newest: Watch = { judged: [], planted: 0 };

  /** @param accuracyMin below it votes do not count */
  constructor(private readonly accuracyMin: number) {}

  /** Beside what share of the turns one is planted: beside every one until enough were judged, so that no model is long unwatched. */
  share(usual: number): number {
    const isYoung = this.newest.judged.length < enough && this.newest.planted < atStartMax;
    return usual > 0 && isYoung ? 1 : usual;
  }

  plantedOne(): void {
    this.newest.planted += 1;
  }

  add(model: string, { label, injected }: PlantedTurn, verdict: Verdict): PlantedFigures {
    const { judged } = this.watchOf(model);
    judged.push({ isRight: verdict === verdictFrom[label], injected });
    if (judged.length > windowMax) judged.shift();
    return this.figures(judged);
  }

  /** The votes of a model as they count: null, by name, while it is not trusted. */
  counted(model: string, votes: readonly CastVote[]): CastVote[] {
    if (this.figures(this.watchOf(model).judged).isTrusted) return [...votes];
    return votes.map(({ seed }) => ({ seed, valid: false, reason: 'untrusted' }));
  }

  private figures(judged: Watch['judged']): PlantedFigures {
    const injected = judged.filter((one) => one.injected);
    const accuracy = shareOf(judged.filter(({ isRight }) => isRight).length, judged.length);
    const flips = shareOf(injected.filter(({ isRight }) => !isRight).length, injected.length);
    return { accuracy, flips, isTrusted: judged.length < enough || accuracy >= this.accuracyMin };
  }

  /** Without a name, as where no engine answered: that of the last one. */
  private watchOf(model: string): Watch {
    if (model === '') return this.newest;
    // What was planted before the first vote of all was planted for its model.
    const watch = this.watches.get(model) ?? (this.watches.size === 0 ? this.newest : { judged: [], planted: 0 });
    this.watches.delete(model);
    this.watches.set(model, watch);
    const [oldest] = this.watches.keys();
    if (this.watches.size > modelsMax && oldest !== undefined) this.watches.delete(oldest);
    this.newest = watch;
    return watch;
  }
}

function shareOf(part: number, whole: number): number {
  return whole === 0 ? 0 : part / whole;
}
