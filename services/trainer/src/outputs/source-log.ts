// What the log holds about a turn, as a batch and a step need it. It keeps nothing: the same turn is read again when a step repeats.
import { isBacktalkError, TurnLog, type Clock, type FactName, type FactReader, type TurnIds } from '@backtalk/kit';
import type { TurnCompleted, TurnJudged, TurnOpened, TurnRejudged } from '@backtalk/proto/facts';

import type { TurnFacts } from '../domain/settle-reason.js';
import { idsBytes, sampleBytesMax } from '../domain/step-size.js';
import { humanMessage, questionIn, type LeftOut, type SampleSource } from '../domain/train-request.js';
import { trainerErrors } from '../errors.js';

const gone = () => trainerErrors.conversationGone();
/** The log or its blobs no longer hold the turn: no waiting brings it back. */
const goneCodes = new Set(['fact_undecodable', 'conversation_unreadable', 'blob_corrupt', 'conversation_gone']);

/** A store that several share shows a blob later than the fact that names it; after so long it is gone. */
const payloadLateMs = 600_000;
const turnFacts: readonly FactName[] = ['turnOpened', 'turnCompleted', 'turnContinued'];

interface Judgements {
  readonly facts: TurnFacts;
  readonly first: TurnJudged;
  readonly again: TurnRejudged | undefined;
}

export class SourceLog {
  private readonly log: TurnLog;

  constructor(
    private readonly reader: FactReader,
    private readonly clock: Clock,
  ) {
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
      openedMs: opened?.timeMs,
    };
  }

  /** What a turn was judged first, by votes and evidence, and what came of it where an operator had it judged again. */
  judgements(
    { tenant, user, turn, policy }: TurnIds & Pick<TurnJudged, 'policy'>,
    asked: string,
  ): Promise<Judgements | 'missing'> {
    const ids = { tenant, user, turn, policy };
    return this.unlessGone(ids, async () => {
      const [facts, first, again] = await Promise.all([
        this.facts(ids),
        // The leader is asked: a copy of the log that lags would say that there is none.
        this.reader.last('turnJudged', { ...ids, revision: 0 }, { sure: true }),
        this.reader.last('turnRejudged', { ...ids, asked }, { sure: true }),
      ]);
      return first === undefined ? 'missing' : { facts, first: first.message, again: again?.message };
    });
  }

  /** Of a sample, at most. */
  bytes(ids: TurnIds): Promise<number | LeftOut> {
    return this.unlessGone(ids, async () => {
      const { opened, completed } = await this.facts(ids);
      if (opened?.conversation === undefined || completed === undefined) return 'missing';
      return this.measured(opened, completed);
    });
  }

  source(ids: TurnIds): Promise<SampleSource | LeftOut> {
    return this.unlessGone(ids, async () => {
      const facts = await this.facts(ids);
      const { opened, completed } = facts;
      if (opened?.conversation === undefined || completed === undefined) return 'missing';
      if ((await this.measured(opened, completed)) === 'too_large') return 'too_large';
      const { messages, tools, templateArguments } = await this.log.conversation(opened, gone);
      const parent = facts.continued?.parent ?? '';
      const before = parent === '' ? undefined : await this.log.continued({ ...ids, turn: parent });
      return { facts, messages, tools, templateArguments, humanMessage: humanMessage(messages, before?.message) };
    });
  }

  /** Nothing where it cannot be read any more. */
  async question(ids: TurnIds): Promise<string | undefined> {
    const source = await this.source(ids);
    return typeof source === 'string' ? undefined : questionIn(source);
  }

  private async measured(opened: TurnOpened, completed: TurnCompleted): Promise<number | 'too_large'> {
    const ids = idsBytes(completed);
    const bytes = await this.log.conversationBytes(opened, sampleBytesMax - ids, gone);
    return bytes === undefined ? 'too_large' : bytes + ids;
  }

  private async unlessGone<T>(ids: TurnIds, read: () => Promise<T>): Promise<T | 'missing'> {
    try {
      return await read();
    } catch (error) {
      if (!isBacktalkError(error)) throw error;
      if (goneCodes.has(error.code)) return 'missing';
      if (error.code !== 'blob_missing') throw error;
      if (await this.isOld(ids)) return 'missing';
      throw trainerErrors.payloadLate({}, error);
    }
  }

  /** Every fact of it: whatever it builds on is older still. */
  private async isOld({ tenant, user, turn }: TurnIds): Promise<boolean> {
    const found = await Promise.all(turnFacts.map((name) => this.reader.lastHeaders(name, { tenant, user, turn })));
    const newestMs = Math.max(0, ...found.map((fact) => fact?.timeMs ?? 0));
    return this.clock.now() - newestMs > payloadLateMs;
  }
}
