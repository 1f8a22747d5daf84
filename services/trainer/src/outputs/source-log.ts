// What the log holds about a turn, as a batch and a step need it. It keeps nothing: the same turn is read again when a step repeats.
import { isBacktalkError, isJsonObject, TurnLog, wordsIn, type FactReader, type TurnIds } from '@backtalk/kit';
import type { TurnCompleted, TurnOpened } from '@backtalk/proto/facts';

import type { TurnFacts } from '../domain/settle-reason.js';
import { idsBytes, sampleBytesMax } from '../domain/step-size.js';
import { humanMessage, type LeftOut, type SampleSource } from '../domain/train-request.js';
import { trainerErrors } from '../errors.js';

const gone = () => trainerErrors.conversationGone();
/** The log or its blobs no longer hold the turn: no waiting brings it back. */
const goneCodes = new Set(['fact_undecodable', 'conversation_unreadable', 'blob_corrupt', 'conversation_gone']);

export class SourceLog {
  private readonly log: TurnLog;

  constructor(reader: FactReader) {
    // A turn without its facts is settled for good.
    this.log = new TurnLog(reader, true);
  }

  async facts(ids: TurnIds): Promise<TurnFacts> {
    const [opened, completed, continued] = await Promise.all([
      this.log.opened(ids),
      this.log.completed(ids),
      this.log.continued(ids),
    ]);
    return {
      opened: opened?.message,
      completed: completed?.message,
      continued: continued?.message,
      continuedMs: continued?.timeMs,
    };
  }

  /** Of a sample, at most; nothing when it is larger than one may be. What cannot be read counts as nothing to read. */
  async bytes(ids: TurnIds): Promise<number | undefined> {
    const { opened, completed } = await this.facts(ids);
    if (opened?.conversation === undefined || completed === undefined) return 0;
    return this.measured(opened, completed);
  }

  async source(ids: TurnIds): Promise<SampleSource | LeftOut> {
    const facts = await this.facts(ids);
    const { opened, completed } = facts;
    if (opened?.conversation === undefined || completed === undefined) return 'missing';
    if ((await this.measured(opened, completed)) === undefined) return 'too_large';
    try {
      const { messages, tools, templateArguments } = await this.log.conversation(opened, gone);
      const parent = facts.continued?.parent ?? '';
      const before = parent === '' ? undefined : await this.log.continued({ ...ids, turn: parent });
      return { facts, messages, tools, templateArguments, humanMessage: humanMessage(messages, before?.message) };
    } catch (error) {
      if (isGone(error)) return 'missing';
      throw error;
    }
  }

  /** What the person had asked before the answer, in their own words; nothing where it cannot be read any more. */
  async question(ids: TurnIds): Promise<string | undefined> {
    const source = await this.source(ids);
    if (typeof source === 'string') return undefined;
    const message = source.messages[source.humanMessage];
    return isJsonObject(message) ? wordsIn(message['content']) : '';
  }

  private async measured(opened: TurnOpened, completed: TurnCompleted): Promise<number | undefined> {
    const ids = idsBytes(completed);
    try {
      const bytes = await this.log.conversationBytes(opened, sampleBytesMax - ids, gone);
      return bytes === undefined ? undefined : bytes + ids;
    } catch (error) {
      if (isGone(error)) return ids;
      throw error;
    }
  }
}

function isGone(error: unknown): boolean {
  return isBacktalkError(error) && goneCodes.has(error.code);
}
