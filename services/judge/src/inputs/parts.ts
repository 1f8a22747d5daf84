import type { Clock } from '@backtalk/kit';
import type { JudgeConfig } from '../config.js';
import type { StandingSentences } from '../domain/hints/stands.js';
import type { PlantedRecord, PlantedTurn } from '../domain/planted.js';
import type { Reader } from '../domain/words/reader.js';
import type { JudgeEvents } from '../events.js';
import type { JudgedTurns } from '../outputs/judged-turns.js';
import type { Judgements } from '../outputs/judgements.js';
import type { VersionTimes } from '../outputs/version-times.js';
import type { VoteCaster } from '../outputs/vote-caster.js';
import type { VoteQueue } from '../outputs/vote-queue.js';

/** What votes need. */
export interface Voting {
  readonly queue: VoteQueue;
  readonly caster: VoteCaster;
  readonly versionTimes: VersionTimes;
  readonly planted: readonly PlantedTurn[];
  readonly record: PlantedRecord;
}

/** What the handlers of facts and votes are given. */
export interface JudgeParts {
  readonly config: Pick<JudgeConfig, 'hintChoice' | 'atLeastOne' | 'voteShare' | 'versionsBehind' | 'plantedShare'>;
  readonly turns: JudgedTurns;
  readonly judgements: Judgements;
  /** Nothing where evidence alone decides. */
  readonly voting: Voting | undefined;
  /** Only where words are read in place of votes. */
  readonly reader: Reader | undefined;
  readonly standing: StandingSentences;
  readonly clock: Clock;
  readonly events: JudgeEvents;
}
