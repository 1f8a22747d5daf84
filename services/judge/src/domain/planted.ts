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

export class PlantedRecord {
  private readonly newest: { readonly isRight: boolean; readonly injected: boolean }[] = [];

  private planted = 0;

  /** @param accuracyMin below it votes do not count */
  constructor(private readonly accuracyMin: number) {}

  /** Beside what share of the turns one is planted: beside every one until enough were judged, so that no start is long unwatched. */
  share(usual: number): number {
    const isYoung = this.newest.length < enough && this.planted < atStartMax;
    return usual > 0 && isYoung ? 1 : usual;
  }

  plantedOne(): void {
    this.planted += 1;
  }

  add({ label, injected }: PlantedTurn, verdict: Verdict): PlantedFigures {
    this.newest.push({ isRight: verdict === verdictFrom[label], injected });
    if (this.newest.length > windowMax) this.newest.shift();
    return this.figures();
  }

  figures(): PlantedFigures {
    const { newest } = this;
    const injected = newest.filter((one) => one.injected);
    const accuracy = shareOf(newest.filter(({ isRight }) => isRight).length, newest.length);
    const flips = shareOf(injected.filter(({ isRight }) => !isRight).length, injected.length);
    return { accuracy, flips, isTrusted: newest.length < enough || accuracy >= this.accuracyMin };
  }

  /** The votes as they count: null, by name, while the judge is not trusted. */
  counted(votes: readonly CastVote[]): CastVote[] {
    if (this.figures().isTrusted) return [...votes];
    return votes.map(({ seed }) => ({ seed, valid: false, reason: 'untrusted' }));
  }
}

function shareOf(part: number, whole: number): number {
  return whole === 0 ? 0 : part / whole;
}
