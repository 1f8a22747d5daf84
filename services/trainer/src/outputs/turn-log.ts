// What the log holds about one turn.
// In: a turn with its tenant and user. Out: its facts; and, for a step, its conversation as messages. Reads by subject, one message each.
// Never keeps anything: the same turn is read again when a step repeats.
import { decodeConversation, isBacktalkError, type Clock, type FactReader } from '@backtalk/kit';
import type { Conversation } from '@backtalk/proto/facts';

import { trainerErrors } from '../errors.js';
import { humanMessage } from '../domain/human-message.js';
import type { TurnFacts } from '../domain/settle-reason.js';
import type { SampleSource } from '../domain/train-request.js';

export interface TurnPlace {
  readonly turn: string;
  readonly tenant: string;
  readonly user: string;
}

/** A replica of the broker may lag behind what a consumer has been told already. */
const readTries = 3;
const readAgainMs = 500;
/** The log or its blobs no longer hold the turn: no waiting brings it back. */
const goneCodes = new Set(['fact_undecodable', 'conversation_unreadable', 'blob_corrupt', 'conversation_gone']);

export class TurnLog {
  constructor(
    private readonly reader: FactReader,
    private readonly clock: Clock,
  ) {}

  async facts({ turn, tenant, user }: TurnPlace): Promise<TurnFacts> {
    const ids = { turn, tenant, user };
    for (let tries = 1; ; tries += 1) {
      const [opened, completed, continued] = await Promise.all([
        this.reader.last('turnOpened', ids),
        this.reader.last('turnCompleted', ids),
        this.reader.last('turnContinued', ids),
      ]);
      const whole = opened !== undefined && completed !== undefined;
      if (whole || tries >= readTries) {
        return {
          opened: opened?.message,
          completed: completed?.message,
          continued: continued?.message,
          continuedMs: continued?.timeMs,
        };
      }
      await this.clock.sleep(readAgainMs);
    }
  }

  /** Undefined when the turn cannot be had any more. */
  async source(place: TurnPlace): Promise<SampleSource | undefined> {
    const facts = await this.facts(place);
    const conversation = facts.opened?.conversation;
    if (conversation === undefined || facts.completed === undefined) return undefined;
    try {
      const { messages, tools } = await decodeConversation(conversation, (turn) => this.conversationOf(turn));
      const parent = facts.continued?.parent ?? '';
      const before =
        parent === ''
          ? undefined
          : await this.reader.last('turnContinued', { turn: parent, tenant: place.tenant, user: place.user });
      return { facts, messages, tools, humanMessage: humanMessage(messages, before?.message) };
    } catch (error) {
      if (isBacktalkError(error) && goneCodes.has(error.code)) return undefined;
      throw error;
    }
  }

  private async conversationOf(turn: string): Promise<Conversation> {
    const opened = await this.reader.last('turnOpened', { turn });
    if (opened?.message.conversation === undefined) throw trainerErrors.conversationGone();
    return opened.message.conversation;
  }
}
