// The collector's working memory in Valkey: who gave which answer, what continues what, which session a turn is in, and
// which requests wait for an answer that is not in the log yet. Every entry can be rebuilt from the log; every write is
// idempotent. Entries expire: an answer older than `keepMs` starts a new session.
import type { ChainableCommander, Redis } from 'ioredis';
import type { Trains } from '../domain/consent.js';
import type { TurnEntry } from '../domain/placement.js';
import { collectorErrors } from '../errors.js';

export interface Owner {
  readonly tenant: string;
  readonly user: string;
}

export interface SessionOwner extends Owner {
  readonly policy: string;
}

export interface SessionConsent {
  /** Of the newest request in the session. */
  readonly consent: Trains | undefined;
  /** Of that request; 0 without one. */
  readonly sequence: number;
  /** When the log was last given the note that turns of the session are withheld; 0 for never. */
  readonly notedMs: number;
}

const candidatesMax = 32;
const sessionAnswersMax = 8;
/** Requests that one person may have waiting for the same answer, retries and branches: those before it are linked by a rebuild. */
const waitingMax = 256;
const prefix = 'collector';
/** An index that was filled by an earlier release lacks what is new, and is filled again. */
const readyKey = `${prefix}:ready:2`;
const sessionsKey = `${prefix}:sessions`;
const turnKey = (turn: string) => `${prefix}:turn:${turn}`;
const answerKeyOf = (owner: Owner, key: string) => `${prefix}:answer:${owner.tenant}:${owner.user}:${key}`;
const waitingKey = (owner: Owner, key: string) => `${prefix}:waiting:${owner.tenant}:${owner.user}:${key}`;
const sessionKey = (session: string) => `${prefix}:session:${session}`;
const sessionAnswersKey = (session: string) => `${prefix}:session-answers:${session}`;
const sessionTurnsKey = (session: string) => `${prefix}:session-turns:${session}`;

export class TurnIndex {
  /** Known as long as the connection lasts. */
  private life: string | undefined;

  constructor(
    private readonly redis: Redis,
    private readonly keepMs: number,
  ) {
    redis.on('close', () => {
      this.life = undefined;
    });
  }

  /** Which life of Valkey answers: one that was killed and came back may have forgotten what it had acknowledged. */
  async currentLife(): Promise<string> {
    if (this.life === undefined) {
      const info = await this.guarded(this.redis.info('server'));
      // A server that hides its id counts as one life, which then ends when the index is gone.
      this.life = /^run_id:(\w+)/m.exec(info)?.[1] ?? 'unknown';
    }
    return this.life;
  }

  /** True while Valkey lives on in whose life the index was filled. */
  async isReady(): Promise<boolean> {
    return (await this.guarded(this.redis.get(readyKey))) === (await this.currentLife());
  }

  async markReady(life: string): Promise<void> {
    await this.guarded(this.redis.set(readyKey, life));
  }

  async turn(turn: string): Promise<TurnEntry | undefined> {
    const fields = await this.guarded(this.redis.hgetall(turnKey(turn)));
    if (fields['tenant'] === undefined) return undefined;
    const { tenant, user = '', policy = '', session = '', parent = '', continuedBy = '' } = fields;
    const completedSequence = Number(fields['completedSequence'] ?? 0);
    const consent = trainsIn(fields['consent']);
    const known = { completedSequence, consent, earlierAnswers: keysIn(fields['earlierAnswers']) };
    return { turn, tenant, user, policy, session, parent, continuedBy, ...known, question: fields['question'] };
  }

  /** Writes the given fields of a turn; fields that are left out keep their values. */
  async putTurn(turn: string, entry: Partial<Omit<TurnEntry, 'turn'>>): Promise<void> {
    const fields = Object.entries(entry).flatMap(([name, value]) => [name, String(value)]);
    await this.run((batch) => batch.hset(turnKey(turn), ...fields).pexpire(turnKey(turn), this.keepMs));
  }

  async addAnswer(owner: Owner, answerKey: string, turn: string, sequence: number): Promise<void> {
    await this.addNewest(answerKeyOf(owner, answerKey), candidatesMax, turn, sequence);
  }

  /** Turns that gave the answer, newest first. */
  async turnsWithAnswer(owner: Owner, answerKey: string): Promise<string[]> {
    return this.guarded(this.redis.zrevrange(answerKeyOf(owner, answerKey), 0, candidatesMax - 1));
  }

  async addSessionAnswer(session: string, turn: string, sequence: number): Promise<void> {
    await this.addNewest(sessionAnswersKey(session), sessionAnswersMax, turn, sequence);
  }

  /** Turns that answered of late in a session, newest first. */
  async sessionAnswers(session: string): Promise<string[]> {
    return this.guarded(this.redis.zrevrange(sessionAnswersKey(session), 0, sessionAnswersMax - 1));
  }

  /** Remembers that a request contains an answer of which the log does not know yet. */
  async wait(owner: Owner, answerKey: string, turn: string): Promise<void> {
    const key = waitingKey(owner, answerKey);
    await this.run((batch) =>
      batch.lrem(key, 0, turn).rpush(key, turn).ltrim(key, -waitingMax, -1).pexpire(key, this.keepMs),
    );
  }

  async waiting(owner: Owner, answerKey: string): Promise<string[]> {
    return this.guarded(this.redis.lrange(waitingKey(owner, answerKey), 0, -1));
  }

  async stopWaiting(owner: Owner, answerKey: string, turn: string): Promise<void> {
    await this.guarded(this.redis.lrem(waitingKey(owner, answerKey), 0, turn));
  }

  /** Something was said in a session: its last moment moves forward, never back. */
  async touchSession(session: string, { tenant, user, policy }: SessionOwner, lastMs: number): Promise<void> {
    await this.run((batch) =>
      batch
        .hset(sessionKey(session), { tenant, user, policy })
        .pexpire(sessionKey(session), this.keepMs)
        .zadd(sessionsKey, 'GT', lastMs, session),
    );
  }

  /** Adds a continued turn to its session, once; order is that of the calls. */
  async addContinued(session: string, turn: string, sequence: number): Promise<void> {
    const key = sessionTurnsKey(session);
    await this.run((batch) => batch.zadd(key, 'NX', String(sequence), turn).pexpire(key, this.keepMs));
  }

  async continuedTurns(session: string): Promise<string[]> {
    return this.guarded(this.redis.zrange(sessionTurnsKey(session), '0', '-1'));
  }

  async session(session: string): Promise<SessionOwner | undefined> {
    const { tenant, user, policy } = await this.guarded(this.redis.hgetall(sessionKey(session)));
    if (tenant === undefined || user === undefined || policy === undefined) return undefined;
    return { tenant, user, policy };
  }

  async sessionConsent(session: string): Promise<SessionConsent> {
    const fields = await this.guarded(this.redis.hmget(sessionKey(session), 'consent', 'consentSequence', 'noted'));
    const [consent, sequence, noted] = fields;
    return { consent: trainsIn(consent ?? undefined), sequence: Number(sequence ?? 0), notedMs: Number(noted ?? 0) };
  }

  async putConsent(session: string, consent: Trains, sequence: number): Promise<void> {
    await this.putInSession(session, { consent, consentSequence: sequence });
  }

  async putNoted(session: string, atMs: number): Promise<void> {
    await this.putInSession(session, { noted: atMs });
  }

  /** The newest session that goes by the name of a closed one; empty where none does. */
  async successor(session: string): Promise<string> {
    return (await this.guarded(this.redis.hget(sessionKey(session), 'successor'))) ?? '';
  }

  /** As `successor`, empty where that one is over, too. */
  async openSuccessor(session: string): Promise<string> {
    const successor = await this.successor(session);
    return successor === '' || (await this.isClosed(successor)) ? '' : successor;
  }

  async putSuccessor(session: string, successor: string): Promise<void> {
    await this.putInSession(session, { successor });
  }

  async isClosed(session: string): Promise<boolean> {
    return (await this.guarded(this.redis.hget(sessionKey(session), 'closed'))) === '1';
  }

  async markClosed(session: string): Promise<void> {
    await this.run((batch) =>
      batch
        .hset(sessionKey(session), { closed: '1' })
        .pexpire(sessionKey(session), this.keepMs)
        .zrem(sessionsKey, session),
    );
  }

  /** Sessions in which nothing was said since the given moment (broker's time), oldest first. */
  async idleSince(ms: number, limit: number): Promise<string[]> {
    return this.guarded(this.redis.zrangebyscore(sessionsKey, '-inf', ms, 'LIMIT', 0, limit));
  }

  /** The session is looked at no more, until something is said in it again. */
  async forgetIdle(session: string): Promise<void> {
    await this.guarded(this.redis.zrem(sessionsKey, session));
  }

  async openSessions(): Promise<number> {
    return this.guarded(this.redis.zcard(sessionsKey));
  }

  private async putInSession(session: string, fields: Readonly<Record<string, string | number>>): Promise<void> {
    await this.run((batch) => batch.hset(sessionKey(session), fields).pexpire(sessionKey(session), this.keepMs));
  }

  /** Keeps the newest turns, by the sequence of their completion. */
  private async addNewest(key: string, max: number, turn: string, sequence: number): Promise<void> {
    await this.run((batch) =>
      batch
        .zadd(key, sequence, turn)
        .zremrangebyrank(key, 0, -1 - max)
        .pexpire(key, this.keepMs),
    );
  }

  private async run(fill: (batch: ChainableCommander) => ChainableCommander): Promise<void> {
    const results = await this.guarded(fill(this.redis.multi()).exec());
    const failed = results?.find(([error]) => error !== null)?.[0];
    if (results === null || failed) throw collectorErrors.indexUnavailable({}, failed);
  }

  private async guarded<T>(command: Promise<T>): Promise<T> {
    try {
      return await command;
    } catch (error) {
      throw collectorErrors.indexUnavailable({}, error);
    }
  }
}

/** As an array's own text has them. */
function keysIn(text: string | undefined): string[] | undefined {
  return text === '' ? [] : text?.split(',');
}

function trainsIn(text: string | undefined): Trains | undefined {
  return text === 'yes' || text === 'no' || text === 'unknown' ? text : undefined;
}
