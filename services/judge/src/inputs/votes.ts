// What a judge does with jobs of the queue of votes: casts a vote on a turn that it reads from the log, or makes the
// judgement when all votes are cast. Any judge does either.
import { asBacktalkError, isBacktalkError } from '@backtalk/kit';
import type { NullReason } from '../domain/verdict.js';
import { seedOf } from '../domain/seeds.js';
import type { VoteHandlers } from '../outputs/vote-queue.js';
import type { JudgeParts, Voting } from './parts.js';
import { keepAgreed } from './session-closed.js';
import { judgeTurn } from './turn-continued.js';

export function voteHandlers(parts: JudgeParts, { caster }: Voting): VoteHandlers {
  const { turns, events } = parts;
  return {
    cast: async (judgement, vote, { number, isLast, signal }) => {
      const material = await turns.materialOf(judgement, judgement.later);
      try {
        const { cast, model } = await caster.cast(material, vote, signal);
        return { vote, model, cast };
      } catch (thrown) {
        const error = asBacktalkError(thrown);
        events.voteFailed(error, number);
        // What only has to wait is not counted as a try.
        if (error.status === 503 || !isLast || signal.aborted) throw error;
        const reason: NullReason = isBacktalkError(error, 'vote_timed_out') ? 'timeout' : 'engine';
        events.voteGivenUp(reason);
        return { vote, model: '', cast: { valid: false, reason, seed: seedOf(judgement.turn, vote) } };
      }
    },
    finish: async (judgement, queued, trace) => {
      const material = await turns.materialOf(judgement, judgement.later);
      const votes = queued.map(({ cast }) => caster.open(cast, material));
      const mark = caster.mark(queued.find(({ model }) => model !== '')?.model ?? '');
      if (judgement.kind === 'closed') await keepAgreed(parts, judgement, votes, mark, trace);
      else await judgeTurn(parts, material, votes, mark, trace);
    },
  };
}
