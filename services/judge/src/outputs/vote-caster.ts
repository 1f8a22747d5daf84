// Casts one vote on the judge pool, and says in the judge's own words what went wrong: whether the vote is to blame,
// or only has to wait.
import { isEngineError, isLostEngine, type EnginePool } from '@backtalk/dialects';
import { asBacktalkError, type Clock } from '@backtalk/kit';
import type { JudgeMark } from '../domain/judgement.js';
import type { Material } from '../domain/material.js';
import type { CastVote } from '../domain/verdict.js';
import { judgeErrors } from '../errors.js';
import type { JudgeEvents } from '../events.js';
import { openHint, sealHint } from './sealed-hints.js';
import type { Voter } from './voter.js';

export interface VoteOfModel {
  /** Its hint is sealed. */
  readonly cast: CastVote;
  /** That cast it. */
  readonly model: string;
}

const timeoutCodes = new Set(['deadline_exceeded', 'engine_timeout']);
/** What proxies before an engine say when it is not there, or not yet; 500 may be about the vote itself. */
const awayStatuses = new Set([502, 504, 520, 521, 522, 523, 524, 529, 530]);
const abortCodes = new Set(['cancelled', 'request_aborted']);
/** Of so many turns in a row every vote has failed. */
const turnsMin = 3;
/** Refused turns that are remembered. */
const refusedMax = 256;

export class VoteCaster {
  private readonly outage = new Outage();

  constructor(
    private readonly pool: EnginePool,
    private readonly voter: Voter,
    private readonly voteWaitMs: number,
    private readonly clock: Clock,
    private readonly events: JudgeEvents,
  ) {}

  async cast(material: Material, vote: number, signal: AbortSignal): Promise<VoteOfModel> {
    const options = { deadlineMs: this.voteWaitMs, signal };
    const startedMs = this.clock.now();
    let lost: string | undefined;
    try {
      const { model, cast } = await this.pool.use(options, async (engine) => ({
        model: engine.model,
        cast: await this.voter.cast(engine, material, vote, options).catch((error: unknown) => {
          if (isLostEngine(error)) lost = engine.url;
          throw error;
        }),
      }));
      this.outage.answered(material.place.turn);
      this.events.voteCast(cast, this.clock.now() - startedMs);
      return { model, cast: withHint(cast, (hint) => sealHint(hint, material)) };
    } catch (thrown) {
      const error = asBacktalkError(thrown);
      if (abortCodes.has(error.code)) throw judgeErrors.votesLeft({}, error);
      if (lost !== undefined) throw judgeErrors.engineLost({ engine: lost }, error);
      const waitMs = error.code === 'engine_overloaded' ? this.pool.limitedForMs : 0;
      if (waitMs > 0) throw judgeErrors.engineLimited({ waitMs }, error);
      if (error.status === 503) throw judgeErrors.engineAway({}, error);
      const isAway = awayStatuses.has(Number(error.detail['engineStatus']));
      // Hosts refuse or give up single prompts with these, too: while others are voted on, it is the prompt.
      if ((isAway || error.code === 'engine_unauthorized') && !this.outage.passesBy(material.place.turn))
        throw isAway ? judgeErrors.engineAway({}, error) : judgeErrors.keyRefused({}, error);
      // Its prompt is the vote's own fault, and so is what fails unless every vote does; a lack of room or of an engine never is.
      const isRefused = isEngineError(error, 'invalid_request', 'context_length_exceeded');
      const turns = isRefused ? undefined : this.outage.failed(material.place.turn);
      if (turns !== undefined) throw judgeErrors.enginesFailing({ turns, reason: error.code }, error);
      if (timeoutCodes.has(error.code)) throw judgeErrors.voteTimedOut({ afterMs: this.voteWaitMs }, error);
      throw judgeErrors.voteFailed({ reason: error.code }, error);
    }
  }

  open(cast: CastVote, material: Material): CastVote {
    return withHint(cast, (hint) => openHint(hint, material));
  }

  /** What stands on a judgement with votes of this model; of the pool's last one where no engine answered. */
  mark(model: string): JudgeMark {
    return { model: model === '' ? this.pool.lastModel : model, promptDigest: this.voter.promptDigest };
  }
}

function withHint(cast: CastVote, change: (hint: string) => string): CastVote {
  return cast.valid ? { ...cast, hint: change(cast.hint) } : cast;
}

/** Whether it is one turn's votes that fail, or whatever is asked: then no vote is to blame. Counted in each judge by itself. */
export class Outage {
  private readonly turns = new Set<string>();
  private votes = 0;
  /** Turns that were refused, and how many votes were cast by then. */
  private readonly refused = new Map<string, number>();

  /** @returns how many turns failed in a row where those are too many to be to blame themselves; else undefined */
  failed(turn: string): number | undefined {
    if (this.turns.size < turnsMin) this.turns.add(turn);
    return this.turns.size >= turnsMin ? this.turns.size : undefined;
  }

  /** Whether this turn was refused before, and votes on others were cast since. */
  passesBy(turn: string): boolean {
    const before = this.refused.get(turn);
    if (before !== undefined) return this.votes - before >= turnsMin;
    this.refused.set(turn, this.votes);
    const [oldest] = this.refused.keys();
    if (this.refused.size > refusedMax && oldest !== undefined) this.refused.delete(oldest);
    return false;
  }

  /** A vote was cast: those that fail from here on are looked at anew. */
  answered(turn: string): void {
    this.votes += 1;
    this.refused.delete(turn);
    this.turns.clear();
  }
}
