// What the handlers of facts are given.
import type { JudgeConfig } from '../config.js';
import type { JudgeEvents } from '../events.js';
import type { BallotBox } from '../outputs/ballot-box.js';
import type { Judgements } from '../outputs/judgements.js';
import type { TurnLog } from '../outputs/turn-log.js';
import type { VersionTimes } from '../outputs/version-times.js';
import type { Reader } from '../domain/small-model/reader.js';
import type { Clock } from '@backtalk/kit';
import type { Ballots } from './ballots.js';

export interface JudgeParts {
  readonly config: Pick<JudgeConfig, 'hintChoice' | 'atLeastOne' | 'voteShare' | 'versionsBehind'>;
  readonly log: TurnLog;
  readonly judgements: Judgements;
  /** Nothing where evidence alone decides. */
  readonly ballots: Ballots | undefined;
  readonly box: BallotBox | undefined;
  /** Only where the model that votes is too small to read. */
  readonly reader: Reader | undefined;
  readonly versionTimes: VersionTimes;
  readonly clock: Clock;
  readonly events: JudgeEvents;
}
