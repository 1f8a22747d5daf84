// One way of casting votes. In: what is judged, and which of its votes. Out: a vote. The same vote of the same turn is
// cast in the same way again: wording and seed follow from its number and the turn's id.
import type { AskedEngine } from '@backtalk/dialects';
import type { Material } from '../domain/material.js';
import type { RoleWeights } from '../domain/small-model/reader.js';
import type { CastVote } from '../domain/verdict.js';

export type JudgeEngine = AskedEngine;

export interface VoteOptions {
  readonly deadlineMs: number;
  readonly signal?: AbortSignal | undefined;
}

/** What stands on every judgement that its votes led to. */
export interface VoterFacts {
  readonly promptDigest: string;
  readonly low: number;
  readonly high: number;
  /** How its votes are weighed against words; nothing where that was not fitted. */
  readonly weights?: RoleWeights;
}

export interface Voter {
  cast(engine: JudgeEngine, material: Material, vote: number, options: VoteOptions): Promise<CastVote>;
  facts(model: string): VoterFacts;
}
