// What a judge does with jobs of the queue of votes: casts a vote on a turn that it reads from the log, or makes the
// judgement when all votes are cast. Any judge does either.
import { asBacktalkError, isBacktalkError } from '@backtalk/kit';
import type { Material } from '../domain/material.js';
import { plantedMaterial, plantedOf } from '../domain/planted.js';
import { seedOf } from '../domain/seeds.js';
import { majority, type CastVote, type NullReason } from '../domain/verdict.js';
import { judgeErrors } from '../errors.js';
import type { Judgement, QueuedVote, VoteHandlers } from '../outputs/vote-queue.js';
import type { JudgeParts, Voting } from './parts.js';
import { rejudged } from './judgement-asked.js';
import { keepAgreed } from './session-closed.js';
import { judgeTurn } from './turn-continued.js';

export function voteHandlers(parts: JudgeParts, voting: Voting): VoteHandlers {
  const { turns, events } = parts;
  const { caster, record } = voting;
  const materialOf = async (judgement: Judgement): Promise<Material> => {
    if (judgement.kind !== 'planted') return turns.materialOf(judgement, judgement.later);
    const planted = plantedOf(judgement.turn, voting.planted);
    const material = planted === undefined ? undefined : plantedMaterial(planted, judgement.turn);
    if (material === undefined) throw judgeErrors.turnUnreadable({ missing: 'planted turn' });
    return material;
  };
  const none = ({ turn }: Judgement, vote: number, reason: NullReason): QueuedVote => {
    events.voteGivenUp(reason);
    return { vote, model: '', cast: { valid: false, reason, seed: seedOf(turn, vote) } };
  };
  return {
    cast: async (judgement, vote, { number, isLast, signal }) => {
      const material = await materialOf(judgement);
      const { deaths } = voting.queue;
      if (await deaths.areTooMany(judgement.turn)) return none(judgement, vote, 'given_up');
      try {
        const { cast, model } = await caster.cast(material, vote, signal);
        return { vote, model, cast };
      } catch (thrown) {
        const error = asBacktalkError(thrown);
        events.voteFailed(error, number);
        const engine = isBacktalkError(error, 'judge_engine_lost') ? error.detail['engine'] : undefined;
        if (typeof engine === 'string' && (await deaths.died(judgement.turn, engine)))
          return none(judgement, vote, 'given_up');
        // What only has to wait is not counted as a try.
        if (error.status === 503 || !isLast || signal.aborted) throw error;
        return none(judgement, vote, isBacktalkError(error, 'vote_timed_out') ? 'timeout' : 'engine');
      }
    },
    finish: async (judgement, queued, trace) => {
      const material = await materialOf(judgement);
      const cast = queued.map((vote) => caster.open(vote.cast, material));
      const mark = caster.mark(queued.find(({ model }) => model !== '')?.model ?? '');
      if (judgement.kind === 'planted')
        return recordPlanted(parts, voting, { material, votes: cast, model: mark.model });
      const votes = record.counted(mark.model, cast);
      if (judgement.kind === 'closed') await keepAgreed(parts, judgement, votes, mark, trace);
      else if (judgement.kind === 'again') await rejudged(parts, judgement, { material, votes, mark }, trace);
      else await judgeTurn(parts, material, votes, mark, trace);
    },
  };
}

/** What the votes made of a turn whose verdict is known. */
function recordPlanted(
  { events }: JudgeParts,
  { planted, record }: Voting,
  {
    material,
    votes,
    model,
  }: { readonly material: Material; readonly votes: readonly CastVote[]; readonly model: string },
): void {
  const known = plantedOf(material.place.turn, planted);
  // An engine that gave no vote says nothing of how well it judges.
  if (known === undefined || !votes.some(({ valid }) => valid)) return;
  events.plantedJudged(record.add(model, known, majority(votes).verdict));
}
