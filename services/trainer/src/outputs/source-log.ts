// What the log holds about a turn, as a batch and a step need it. It keeps nothing: the same turn is read again when a step repeats.
import { isBacktalkError, TurnLog, type Clock, type FactReader, type TurnIds } from '@backtalk/kit';

import type { TurnFacts } from '../domain/settle-reason.js';
import { humanMessage, type SampleSource } from '../domain/train-request.js';
import { trainerErrors } from '../errors.js';

/** A replica of the broker may lag behind what a consumer was given already. */
const readTries = 3;
const readAgainMs = 500;
/** The log or its blobs no longer hold the turn: no waiting brings it back. */
const goneCodes = new Set(['fact_undecodable', 'conversation_unreadable', 'blob_corrupt', 'conversation_gone']);

export class SourceLog {
  private readonly log: TurnLog;

  constructor(
    reader: FactReader,
    private readonly clock: Clock,
  ) {
    this.log = new TurnLog(reader);
  }

  async facts(ids: TurnIds): Promise<TurnFacts> {
    for (let tries = 1; ; tries += 1) {
      const [opened, completed, continued] = await Promise.all([
        this.log.opened(ids),
        this.log.completed(ids),
        this.log.continued(ids),
      ]);
      if ((opened !== undefined && completed !== undefined) || tries >= readTries) {
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
  async source(ids: TurnIds): Promise<SampleSource | undefined> {
    const facts = await this.facts(ids);
    if (facts.opened?.conversation === undefined || facts.completed === undefined) return undefined;
    try {
      const { messages, tools } = await this.log.conversation(facts.opened, () => trainerErrors.conversationGone());
      const parent = facts.continued?.parent ?? '';
      const before = parent === '' ? undefined : await this.log.continued({ ...ids, turn: parent });
      return { facts, messages, tools, humanMessage: humanMessage(messages, before?.message) };
    } catch (error) {
      if (isBacktalkError(error) && goneCodes.has(error.code)) return undefined;
      throw error;
    }
  }
}
