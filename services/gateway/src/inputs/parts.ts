// What the gateway's inputs are given to act with.
import type { Clock, FactPublisher, FactReader } from '@backtalk/kit';
import type { Conversation } from '@backtalk/proto/facts';
import type { GatewayConfig } from '../config.js';
import type { Callers } from '../domain/caller.js';
import type { WrittenConversation } from '../domain/conversation.js';
import type { Places } from '../domain/places.js';
import type { GatewayEvents } from '../events.js';
import type { AnswerIndex } from '../outputs/answer-index.js';
import type { EngineFleet } from '../outputs/engine-fleet.js';
import type { KeyRing } from '../outputs/key-ring.js';
import type { MinuteCounts } from '../outputs/minute-counts.js';
import type { RouteTable } from '../outputs/route-table.js';
import type { TurnStore } from '../outputs/turn-store.js';

export interface Parts {
  readonly config: GatewayConfig;
  readonly clock: Clock;
  readonly events: GatewayEvents;
  readonly places: Places;
  readonly keys: KeyRing;
  readonly callers: Callers;
  readonly routes: RouteTable;
  readonly fleet: EngineFleet;
  readonly store: TurnStore;
  readonly index: AnswerIndex;
  readonly minutes: MinuteCounts;
  /** Compresses where that pays. */
  readonly encode: (conversation: WrittenConversation) => Promise<Conversation>;
  readonly publisher: FactPublisher;
  readonly reader: FactReader;
  /** Remembers work that outlives its request, so that a stop waits for it. */
  readonly afterwards: (work: Promise<unknown>) => void;
}
