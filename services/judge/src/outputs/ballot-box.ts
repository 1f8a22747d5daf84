// Casts one vote on the judge pool, and says in the judge's own words what went wrong: whether the vote is to blame,
// or only has to wait.
import { asBacktalkError, isBacktalkError, type BacktalkError, type Clock } from '@backtalk/kit';
import type { Material } from '../domain/material.js';
import type { CastVote } from '../domain/verdict.js';
import { judgeErrors } from '../errors.js';
import type { JudgeEvents } from '../events.js';
import type { EnginePool } from './engine-pool.js';
import type { Voter, VoterFacts } from './voter.js';

export interface BallotBoxOptions {
  readonly pool: EnginePool;
  readonly voter: Voter;
  readonly voteWaitMs: number;
  readonly clock: Clock;
  readonly events: JudgeEvents;
}

export interface JudgeFacts extends VoterFacts {
  readonly model: string;
}

export class BallotBox {
  /** Models of which it was said that they have no thresholds. */
  private readonly told = new Set<string>();

  constructor(private readonly options: BallotBoxOptions) {}

  async cast(material: Material, vote: number, signal: AbortSignal): Promise<CastVote> {
    const { pool, voter, voteWaitMs, clock, events } = this.options;
    const options = { deadlineMs: voteWaitMs, signal };
    const startedMs = clock.now();
    try {
      const cast = await pool.use(options, (engine) => voter.cast(engine, material, vote, options));
      events.voteCast(cast, clock.now() - startedMs);
      if (!cast.valid && cast.reason === 'uncalibrated') this.tellOnce(pool.lastModel);
      return cast;
    } catch (error) {
      throw translate(asBacktalkError(error), voteWaitMs);
    }
  }

  private tellOnce(model: string): void {
    if (this.told.has(model)) return;
    this.told.add(model);
    this.options.events.thresholdsMissing(model, this.options.voter.facts(model).promptDigest);
  }

  facts(): JudgeFacts {
    const { pool, voter } = this.options;
    return { model: pool.lastModel, ...voter.facts(pool.lastModel) };
  }
}

/** Too slow is the vote's own failure; a lack of room or of an engine is nobody's. */
function translate(error: BacktalkError, afterMs: number): BacktalkError {
  if (timeoutCodes.has(error.code)) return judgeErrors.voteTimedOut({ afterMs }, error);
  if (abortCodes.has(error.code)) return judgeErrors.votesLeft({}, error);
  if (error.status === 503)
    return isBacktalkError(error, 'judge_engine_away') ? error : judgeErrors.engineAway({}, error);
  return judgeErrors.voteFailed({ reason: error.code }, error);
}

const timeoutCodes = new Set(['deadline_exceeded', 'engine_timeout']);
const abortCodes = new Set(['cancelled', 'request_aborted']);
