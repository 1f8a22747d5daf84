// What requests name by ids, from the log: answers of a person's own turns, and what was said up to one.
//
// In: a caller, and what their request leaves to the log. Out: messages of the chat API. An answer never changes, so it is remembered
// for a while: an agent names all its answers with every step. It never gives what is not the caller's own, or of a policy that
// their key does not open.
import {
  asBacktalkError,
  isJsonObject,
  TurnLog,
  type BacktalkError,
  type Clock,
  type FactReader,
  type JsonObject,
} from '@backtalk/kit';
import { gatewayErrors } from '../errors.js';
import { openPolicies, type Caller } from '../domain/caller.js';
import { earlierAnswer, type FromLog, type LeftToLog } from '../domain/left-to-log.js';

interface Remembered {
  readonly answer: JsonObject;
  readonly policy: string;
  readonly characters: number;
  readonly atMs: number;
}

type NamedBy = 'previous_response_id' | 'input';

const param = 'previous_response_id';
const turnMs = 2_000;
/** Each is read with the ids of its prompt. */
const atOnce = 8;
/** Of all people's together. */
const charactersMax = 16 * 1024 * 1024;
/** One that is forgotten by the log is not remembered for long. */
const rememberedMs = 10 * 60_000;
const retryAfterSeconds = 2;

export class EarlierAnswers {
  private readonly log: TurnLog;
  /** Oldest first. */
  private readonly remembered = new Map<string, Remembered>();
  private characters = 0;

  constructor(
    private readonly reader: FactReader,
    private readonly clock: Clock,
  ) {
    this.log = new TurnLog(reader);
  }

  /**
   * Answers end at the first that is not in the log. Throws `previous_response_not_found` where the log lacks any of what was said
   * up to the answer that is gone on from, and `request_too_large` where all of it is more than that.
   * @param charactersMost of all that is read
   */
  async named(caller: Caller, { previous, referred }: LeftToLog, charactersMost: number): Promise<FromLog> {
    try {
      const { earlier, train } =
        previous === undefined ? { earlier: [], train: true } : await this.saidUntil(caller, previous, charactersMost);
      return { earlier, train, answers: await this.answersOf(caller, referred, charactersMost) };
    } catch (thrown) {
      const error = asBacktalkError(thrown);
      throw error.status === undefined ? gatewayErrors.logUnavailable({ retryAfterSeconds }, error) : error;
    }
  }

  private async answersOf(caller: Caller, turns: readonly string[], charactersMost: number) {
    const answers: Record<string, JsonObject> = {};
    let characters = 0;
    for (let at = 0; at < turns.length; at += atOnce) {
      const some = turns.slice(at, at + atOnce);
      for (const [index, found] of (await Promise.all(some.map((turn) => this.answerOf(caller, turn)))).entries()) {
        // What is named behind it is not looked for: the request is refused.
        if (found === undefined) return answers;
        characters += found.characters;
        if (characters > charactersMost) throw tooLarge('input', charactersMost);
        answers[some[index] ?? ''] = found.answer;
      }
    }
    return answers;
  }

  private async saidUntil(caller: Caller, turn: string, bytesMax: number) {
    const { tenant, user } = caller;
    const missing = (cause?: BacktalkError) => gatewayErrors.previousResponseNotFound({ param }, cause);
    try {
      const answered = await this.answerOf(caller, turn);
      const opened = answered === undefined ? undefined : await this.held('turnOpened', { tenant, user, turn });
      if (answered === undefined || opened === undefined) throw missing();
      const { message } = opened;
      const bytes = await this.log.conversationBytes(message, bytesMax - answered.characters, () => missing());
      if (bytes === undefined) throw tooLarge(param, bytesMax);
      const { messages } = await this.log.conversation(message, () => missing());
      const said = answered.answer['content'] === '' ? [] : [answered.answer];
      return { earlier: [...messages.filter(isJsonObject), ...said], train: message.consent?.train ?? true };
    } catch (thrown) {
      const error = asBacktalkError(thrown);
      // Facts that cannot be read, and never will.
      throw error.status === undefined && error.retry === 'never' ? missing(error) : error;
    }
  }

  private async answerOf(caller: Caller, turn: string): Promise<Remembered | undefined> {
    const { tenant, user } = caller;
    if (!/^turn_\w{1,64}$/.test(turn)) return undefined;
    const key = `${tenant}\n${user}\n${turn}`;
    const found = this.recall(key) ?? (await this.read(key, { tenant, user, turn }));
    return found !== undefined && openPolicies([found.policy], caller).includes(found.policy) ? found : undefined;
  }

  private recall(key: string): Remembered | undefined {
    const known = this.remembered.get(key);
    return known === undefined || this.clock.now() - known.atMs > rememberedMs ? undefined : known;
  }

  private async read(
    key: string,
    ids: { tenant: string; user: string; turn: string },
  ): Promise<Remembered | undefined> {
    const completed = await this.held('turnCompleted', ids);
    if (completed === undefined) return undefined;
    const answer = earlierAnswer(completed.message);
    const { length: characters } = JSON.stringify(answer);
    const remembered = { answer, policy: completed.message.policy, characters, atMs: this.clock.now() };
    this.forget(key);
    this.remembered.set(key, remembered);
    this.characters += characters;
    for (const oldest of this.remembered.keys()) {
      if (this.characters <= charactersMax && this.recall(oldest) !== undefined) break;
      this.forget(oldest);
    }
    return remembered;
  }

  private forget(key: string): void {
    this.characters -= this.remembered.get(key)?.characters ?? 0;
    this.remembered.delete(key);
  }

  /** Undefined where the log's leader has none; a copy that lags is said to be unavailable. */
  private async held<N extends 'turnOpened' | 'turnCompleted'>(
    name: N,
    ids: { tenant: string; user: string; turn: string },
  ) {
    try {
      const known = await this.reader.lastHeaders(name, ids, { timeoutMs: turnMs, sure: true });
      if (known === undefined) return undefined;
      const found = await this.reader.last(name, ids, { timeoutMs: turnMs });
      if (found === undefined) throw gatewayErrors.logUnavailable({ retryAfterSeconds });
      return found;
    } catch (thrown) {
      const error = asBacktalkError(thrown);
      // A fact that cannot be read, and never will, is as good as none.
      if (error.retry === 'never') return undefined;
      throw error;
    }
  }
}

function tooLarge(named: NamedBy, limitBytes: number): BacktalkError {
  return gatewayErrors.earlierTooLarge({ param: named, limitBytes });
}
