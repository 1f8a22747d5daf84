// Cases of learned lessons, from the log alone: the trainer's newest batch says which turns they are, and the turns' own facts what was asked.
// A turn that is gone from the log, of another policy, or not to be learned from, is no case; a batch that cannot be read has none.
import { isBacktalkError, TurnLog, type FactReader, type JsonObject } from '@backtalk/kit';
import { casesFor, type Case, type CaseLimits } from '../domain/cases.js';
import { publisherErrors } from '../errors.js';

/** A turn's request as it was made, with its prompt as the engine had rendered it. */
export interface CaseRequest {
  readonly promptIds: readonly number[];
  readonly messages: readonly unknown[];
  readonly tools: readonly unknown[];
  readonly templateArguments: JsonObject;
}

/** A case is asked eight times over: what is longer would cost more than all others. */
const promptTokensMax = 2_048;
const gone = (turn: string) => publisherErrors.caseGone({ turn });
const goneCodes: ReadonlySet<string> = new Set([
  'case_gone',
  'fact_undecodable',
  'conversation_unreadable',
  'blob_corrupt',
  // Lost, or late: a version that waits for it would never be decided, and training with it.
  'blob_missing',
]);

export class LessonCases {
  private readonly log: TurnLog;

  constructor(
    private readonly reader: FactReader,
    private readonly policy: string,
    private readonly limits: CaseLimits,
  ) {
    this.log = new TurnLog(reader);
  }

  /** @param number of the version that is to be asked */
  async forVersion(number: number): Promise<Case[]> {
    if (this.limits.perLesson === 0) return [];
    const newest = await unlessGone(this.reader.last('batchClosed', { policy: this.policy }));
    return casesFor(newest?.message.lessons ?? [], number, this.limits);
  }

  request(of: Case): Promise<CaseRequest | undefined> {
    return unlessGone(this.read(of));
  }

  private async read(of: Case): Promise<CaseRequest | undefined> {
    const [opened, completed] = await Promise.all([this.log.opened(of), this.log.completed(of)]);
    if (opened?.message.policy !== this.policy || opened.message.consent?.train !== true) return undefined;
    // What was asked with lessons shown is no question without them.
    if (completed?.message.shown !== undefined) return undefined;
    const promptIds = completed?.message.promptIds ?? [];
    if (promptIds.length === 0 || promptIds.length > promptTokensMax) return undefined;
    return { promptIds, ...(await this.log.conversation(opened.message, gone)) };
  }
}

async function unlessGone<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (isBacktalkError(error) && goneCodes.has(error.code)) return undefined;
    throw error;
  }
}
