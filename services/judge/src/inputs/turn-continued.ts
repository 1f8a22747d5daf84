// A turn's next state is known: votes and evidence become its first judgement. The fact is settled only when that is
// stored.
import type { Delivery, StoredFact } from '@backtalk/kit';
import type { TurnContinued } from '@backtalk/proto/facts';
import { judge, type JudgeMark } from '../domain/judgement.js';
import type { Material } from '../domain/material.js';
import { gatherEvidence } from '../domain/tool-evidence.js';
import { leftOut } from '../domain/vote-rule.js';
import type { SkipReason } from '../events.js';
import type { Ballots, Delivered } from './ballots.js';
import type { JudgeParts } from './parts.js';

const evidenceOnly: JudgeMark = { model: 'rules', promptDigest: '', low: 0, high: 0 };

export async function turnContinued(
  parts: JudgeParts,
  { message, trace, timeMs }: StoredFact<'turnContinued'>,
  delivery: Delivery,
): Promise<void> {
  const { clock, events } = parts;
  const startedMs = clock.now();
  const skipped = await skipReason(parts, message, delivery.redelivered);
  if (skipped !== undefined) return events.turnSkipped(skipped);
  const material = await parts.log.material(message);
  if (material === undefined) return events.turnSkipped('nothing_said');
  const { deliveries, signal } = delivery;
  const made = await judgement(parts, material, timeMs, { deliveries, signal, trace });
  if (!(await parts.judgements.storeFirst(made.message, trace))) return events.turnSkipped('judged_before');
  events.turnJudged(made.outcome.restsOn, made.outcome, made.message.hint);
  events.turnTook(clock.now() - startedMs);
}

/** Who said no is not judged, and neither is what no sample can be made of. */
export function isJudgeable({ main, consent }: TurnContinued): SkipReason | undefined {
  if (consent?.train !== true) return 'opted_out';
  return main ? undefined : 'side';
}

async function skipReason(
  { log, judgements }: JudgeParts,
  message: TurnContinued,
  redelivered: boolean,
): Promise<SkipReason | undefined> {
  const never = isJudgeable(message);
  if (never !== undefined) return never;
  if (redelivered && (await judgements.isJudged(message))) return 'judged_before';
  return (await log.isErased(message)) ? 'erased' : undefined;
}

/** Nothing where evidence alone decides. */
export function ballotsFor(parts: JudgeParts, { place, version }: Material, saidMs: number): Ballots | undefined {
  const { ballots, versionTimes, events, config } = parts;
  if (ballots === undefined) return undefined;
  const { turn, policy } = place;
  const progress = { since: versionTimes.since(policy, saidMs), back: versionTimes.back(policy, version) };
  const why = leftOut(turn, progress, config);
  if (why === undefined) return ballots;
  events.votesLeftOut(why);
  return undefined;
}

async function judgement(parts: JudgeParts, material: Material, saidMs: number, delivered: Delivered) {
  const { box, events, config, reader } = parts;
  const ballots = ballotsFor(parts, material, saidMs);
  const votes = (await ballots?.castAll(material, delivered)) ?? [];
  const mark = (ballots === undefined ? undefined : box?.facts()) ?? evidenceOnly;
  const reading = reader?.read(material, mark.weights);
  const evidence = gatherEvidence(material.next);
  events.evidenceFound(evidence);
  return judge(material, votes, { evidence, reading }, mark, config.hintChoice);
}
