// One way of casting votes. In: what is judged, and which of its votes. Out: a vote. The same vote of the same turn is
// cast in the same way again: wording and seed follow from its number and the turn's id.
import type { AskedEngine } from '@backtalk/dialects';
import type { Material } from '../domain/material.js';
import type { CastVote } from '../domain/verdict.js';

export type JudgeEngine = AskedEngine;

export interface VoteOptions {
  readonly deadlineMs: number;
  readonly signal?: AbortSignal | undefined;
}

export interface Voter {
  /** Of its prompts; it stands on every judgement that its votes led to. */
  readonly promptDigest: string;
  cast(engine: JudgeEngine, material: Material, vote: number, options: VoteOptions): Promise<CastVote>;
}
