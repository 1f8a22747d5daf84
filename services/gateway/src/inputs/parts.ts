// What the gateway's inputs are given to act with.
import type { DeadlyPrompts } from '@backtalk/dialects';
import type { Clock, MutexByKey } from '@backtalk/kit';
import type { GatewayConfig } from '../config.js';
import type { BodyBudget } from '../domain/body-budget.js';
import type { Callers } from '../domain/caller.js';
import type { FairTurns } from '../domain/fair-turns.js';
import type { RefusalRoom } from '../domain/refusal-room.js';
import type { RequestSlots } from '../domain/request-slots.js';
import type { TraceRate } from '../domain/trace-rate.js';
import type { GatewayEvents } from '../events.js';
import type { AnswerIndex } from '../outputs/answer-index.js';
import type { BackgroundWork } from '../outputs/background-work.js';
import type { CaptureShare } from '../outputs/capture-share.js';
import type { ChatReader } from '../outputs/chat-reader.js';
import type { EarlierAnswers } from '../outputs/earlier-answers.js';
import type { EngineFleet } from '../outputs/engine-fleet.js';
import type { FactLog } from '../outputs/fact-log.js';
import type { LessonView } from '../outputs/lesson-view.js';
import type { KeyStore } from '../outputs/key-store.js';
import type { MinuteCounts } from '../outputs/minute-counts.js';
import type { Packer } from '../outputs/packer.js';
import type { RouteTable } from '../outputs/route-table.js';
import type { TurnStore } from '../outputs/turn-store.js';
import type { VersionHistory } from '../outputs/version-history.js';

/** Who may ask, and how much. */
export interface Access {
  readonly keys: KeyStore;
  readonly callers: Callers;
  readonly slots: RequestSlots;
  /** For requests that begin or end. */
  readonly fair: FairTurns;
  /** For pieces of answers. */
  readonly fairPieces: FairTurns;
  /** For bodies that have come and are to be read. */
  readonly fairBodies: FairTurns;
  /** For feedback that is to be stored. */
  readonly feedback: MutexByKey;
  readonly minutes: MinuteCounts;
  readonly bodies: BodyBudget;
  readonly reader: ChatReader;
  readonly shares: CaptureShare;
  readonly refusals: RefusalRoom;
  readonly traces: TraceRate;
}

/** Which weights answer, and on which engine. */
export interface Serving {
  readonly routes: RouteTable;
  readonly fleet: EngineFleet;
  readonly slots: RequestSlots;
  readonly deadly: DeadlyPrompts;
}

/** Where turns go, and what is known of earlier ones. */
export interface Turns {
  readonly store: TurnStore;
  readonly packer: Packer;
  readonly index: AnswerIndex;
  readonly log: FactLog;
  readonly earlier: EarlierAnswers;
  readonly lessons: LessonView;
  readonly versions: VersionHistory;
  /** A stop waits for it. */
  readonly background: BackgroundWork;
}

export interface Parts {
  readonly config: GatewayConfig;
  readonly clock: Clock;
  readonly events: GatewayEvents;
  readonly access: Access;
  readonly serving: Serving;
  readonly turns: Turns;
}
