// A turn's next state is known: votes and evidence become its first judgement. The fact is settled only when that is
// stored, by this judge or another.
import type { Delivery, StoredFact, Trace } from '@backtalk/kit';
import type { TurnContinued } from '@backtalk/proto/facts';
import { gatherEvidence } from '../domain/evidence.js';
import { judge, type JudgeMark, type Judgement as Made } from '../domain/judgement.js';
import type { Material } from '../domain/material.js';
import { plantedBeside } from '../domain/planted.js';
import { nextStateOf } from '../domain/read-material.js';
import type { CastVote, EvidenceVote } from '../domain/verdict.js';
import { leftOut } from '../domain/vote-rule.js';
import { judgeErrors } from '../errors.js';
import type { SkipReason } from '../events.js';
import type { Judgement } from '../outputs/vote-queue.js';
import type { JudgeParts, Voting } from './parts.js';
import { addVotesBelow } from './votes-below.js';

export const evidenceOnly: JudgeMark = { model: 'rules', promptDigest: '' };

export async function turnContinued(
  parts: JudgeParts,
  { message, trace, timeMs }: StoredFact<'turnContinued'>,
  { redelivered, signal }: Delivery,
): Promise<void> {
  const { clock, events, judgements, turns } = parts;
  const startedMs = clock.now();
  const never = isJudgeable(message);
  if (never !== undefined) return events.turnSkipped(never);
  if (redelivered && (await judgements.isJudged(message))) {
    events.turnSkipped('judged_before');
    return addVotesBelow(parts, message, nextStateOf(message), trace);
  }
  const material = await turns.material(message);
  if (material === undefined) return events.turnSkipped('nothing_said');
  // What was done needs no reader.
  const voting = material.act === undefined ? votingOn(parts, material, timeMs) : undefined;
  if (voting === undefined) {
    await judgeTurn(parts, material, [], evidenceOnly, trace);
  } else {
    const { tenant, user, policy, turn } = material.place;
    const judgement: Judgement = { kind: 'continued', tenant, user, policy, turn, later: [] };
    await plantBeside(parts, voting, judgement, trace);
    await voting.queue.decide(judgement, trace, signal);
    if (!(await judgements.isJudged(message))) {
      // The queue remembers a judgement that the log does not, as after a restored backup.
      await voting.queue.forget(judgement);
      throw judgeErrors.judgementMissing();
    }
  }
  events.turnTook(clock.now() - startedMs);
}

/** A planted turn that cannot be queued keeps no other from being judged. */
async function plantBeside(
  { config, events }: JudgeParts,
  { queue, planted, record }: Voting,
  beside: Judgement,
  trace: Trace,
): Promise<void> {
  const turn = plantedBeside(beside.turn, record.share(config.plantedShare), planted.length);
  if (turn === undefined) return;
  record.plantedOne();
  await queue.plant({ ...beside, kind: 'planted', turn }, trace).catch((error: unknown) => {
    events.plantingFailed(error);
  });
}

/** Who said no is not judged, and neither is what no sample can be made of. */
export function isJudgeable({ main, consent }: TurnContinued): SkipReason | undefined {
  if (consent?.train !== true) return consent?.source === 'unknown' ? 'consent_unknown' : 'opted_out';
  return main ? undefined : 'side';
}

/** Nothing where evidence alone decides. */
export function votingOn(parts: JudgeParts, { place, version }: Material, saidMs: number): Voting | undefined {
  const { voting, events, config } = parts;
  if (voting === undefined) return undefined;
  const { turn, policy } = place;
  const { versionTimes } = voting;
  const progress = { since: versionTimes.since(policy, saidMs), back: versionTimes.back(policy, version) };
  const why = leftOut(turn, progress, config);
  if (why === undefined) return voting;
  events.votesLeftOut(why);
  return undefined;
}

/** Stores the first judgement of a turn, once, and puts it below feedback that came before. */
export async function judgeTurn(
  parts: JudgeParts,
  material: Material,
  votes: readonly CastVote[],
  mark: JudgeMark,
  trace: Trace,
): Promise<void> {
  const { events, judgements } = parts;
  const { message, outcome, dropped, evidence } = judgementOf(parts, material, votes, mark);
  events.evidenceFound(evidence);
  if (await judgements.storeFirst(message, trace)) {
    events.hintsDropped(dropped);
    events.turnJudged(outcome.restsOn, outcome, message);
  } else {
    events.turnSkipped('judged_before');
  }
  await addVotesBelow(parts, material.place, material.next, trace);
}

/** What this judge makes of a turn, with the evidence that it found. */
export function judgementOf(
  { config, reader, standing }: JudgeParts,
  material: Material,
  votes: readonly CastVote[],
  mark: JudgeMark,
): Made & { readonly evidence: readonly EvidenceVote[] } {
  const reading = material.act === undefined ? reader?.read(material) : undefined;
  const evidence = gatherEvidence(material);
  const made = judge(material, votes, { evidence, reading }, mark, { choice: config.hintChoice, standing });
  return { ...made, evidence };
}
