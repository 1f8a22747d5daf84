// Keeps the record of one turn: opened when its request arrives, completed when its answer has ended in any way.
//
// In: a turn, its messages, then its answer. Out: stored facts, and an answer index that knows the answer. Writing the
// messages down runs beside the engine's work; nothing here delays the first token.
import { setImmediate as immediate } from 'node:timers/promises';
import { asBacktalkError } from '@backtalk/kit';
import type { TurnCompleted } from '@backtalk/proto/facts';
import { writeConversation, type WrittenConversation } from '../domain/conversation.js';
import { factBytesLeast, requestBytes } from '../domain/log-bytes.js';
import { sessionOfTurn } from '../domain/session-name.js';
import { areLogprobsUntrue, type Ending } from '../domain/trainability.js';
import {
  completedBytes,
  remembered,
  tokensUsed,
  turnCompleted,
  turnOpened,
  type Turn,
  type TurnAnswer,
} from '../domain/turn.js';
import type { RememberedConversation } from '../domain/continuation.js';
import type { StoredWhere } from '../events.js';
import type { OpenTurn } from '../outputs/turn-store.js';
import type { Exchange } from './answer-turn.js';
import type { Parts } from './parts.js';

/** Failures that are the client's own doing: it went away, or has taken all of its room for answers. */
const clientsDoing = new Set(['client_gone', 'reader_too_slow', 'request_aborted', 'rate_limit_exceeded']);

/** Of a conversation that is not in the log. */
const nothingShared = { messages: 0, digest: '', depth: 0 };

interface Written {
  readonly open: OpenTurn;
  readonly conversation: WrittenConversation;
  /** About as many as the log takes for the request, and for what it says of the turn before. */
  readonly bytes: number;
}

export class TurnRecord {
  /** Undefined where the turn is not stored. */
  private readonly written: Promise<Written> | undefined;

  constructor(
    private readonly parts: Parts,
    private readonly exchange: Exchange,
  ) {
    this.written = exchange.fullShare === undefined ? this.writeOpened() : undefined;
    // A failure here is reported when the turn completes; until then nothing waits for it.
    this.written?.catch(() => undefined);
  }

  /** Resolves when the turn is stored and its answer can be recognised. Throws `capture_unavailable`. */
  async complete(turn: Turn, answer: TurnAnswer): Promise<void> {
    const { events, access, serving } = this.parts;
    await access.fair.of(turn.caller.keyId);
    const logprobsUntrue = areLogprobsUntrue(serving.fleet.capabilitiesOf(answer.engine?.url));
    const completed = turnCompleted(turn, { ...answer, logprobsUntrue });
    const { keyId, limits } = turn.caller;
    const usage = { promptTokens: 0, completionTokens: 0, ...completed.usage };
    await Promise.all([
      this.written === undefined ? this.passOver(turn) : this.store(turn, completed, await this.written),
      limits.tokensPerMinute === undefined
        ? undefined
        : access.minutes.addTokens(keyId, tokensUsed(completed, this.promptBytes)),
    ]);
    events.turnEnded(turn.id, completed.untrainableReasons, usage);
  }

  /** Of its text: what else it holds is not counted by its bytes. */
  private get promptBytes(): number {
    const { messages, tools, hasMedia } = this.exchange.request;
    return hasMedia ? 0 : messages.json.byteLength + tools.byteLength;
  }

  private async store(turn: Turn, completed: TurnCompleted, { open, conversation, bytes }: Written): Promise<void> {
    const { events, clock, access } = this.parts;
    const { store, index } = this.parts.turns;
    const { trace } = this.exchange;
    const { tenant, user } = turn.caller;
    const sinceMs = clock.now();
    const facts = [store.fact('turnCompleted', completed, trace)];
    if (turn.declared.done) {
      const ended = { tenant, user, turn: turn.id, outcome: undefined };
      facts.push(store.fact('sessionEnded', { ...ended, session: turn.session }, trace));
      // A name may be used again after its end, and each end is stored once: the turn that says so tells this one.
      const session = sessionOfTurn(turn.id);
      if (session !== turn.session) facts.push(store.fact('sessionEnded', { ...ended, session }, trace));
    }
    const remember = (kept: RememberedConversation) =>
      index.remember(completed.answerKey, remembered(turn, kept), { tenant, user, session: turn.session });
    const remembering = remember(conversation.remembered);
    let where: StoredWhere = 'nowhere';
    try {
      where = await store.complete(open, facts);
    } finally {
      await remembering;
      // The newest memory holds: what goes on from it takes its session and its "no" along, and builds on nothing that is nowhere.
      if (where === 'nowhere') await remember(nothingShared);
    }
    // Of an attempt, each turn is judged once more when its outcome is known.
    const ends = factBytesLeast * (facts.length - 1 + (turn.group === '' ? 0 : 1));
    access.shares.add(turn.caller, bytes + completedBytes(completed) + ends);
    events.turnStored(turn.id, where, (clock.now() - sinceMs) / 1000);
  }

  /** What continues it finds no parent; a "no" to training is in the log all the same, and stays with its session. */
  private async passOver(turn: Turn): Promise<void> {
    const { tenant, user } = turn.caller;
    this.parts.events.turnCapped(this.exchange.fullShare ?? 'tenant');
    if (turn.consent.train) return;
    const { store } = this.parts.turns;
    const { refusals, shares } = this.parts.access;
    if (refusals.isNew(turn, this.exchange.followsNo)) {
      const { source } = turn.consent;
      const said = { turn: turn.id, tenant, user, session: turn.session, source };
      await store.keep(store.fact('turnWithheld', said, this.exchange.trace));
      refusals.add(turn);
      shares.add(turn.caller, factBytesLeast);
    }
    await this.parts.turns.index.remember('', remembered(turn, nothingShared), { tenant, user, session: turn.session });
  }

  /** Records an answer that did not come to its end. Its client knows, or is gone: this goes on in the background. */
  breakOff(turn: Turn, answer: Omit<TurnAnswer, 'ending'>, thrown: unknown): void {
    const error = asBacktalkError(thrown);
    const isClients = this.exchange.signal.aborted || clientsDoing.has(error.code);
    const ending: Ending = isClients ? 'aborted' : 'engine_failed';
    if (!isClients && (error.status ?? 500) >= 500) this.parts.events.engineFailed(turn.id, error);
    this.parts.turns.background.add(this.complete(turn, { ...answer, ending }));
  }

  private async writeOpened(): Promise<Written> {
    const { turn, request, trace } = this.exchange;
    const { store, packer } = this.parts.turns;
    const conversation = await writeConversation(request, turn.parent, immediate);
    const stored = await packer.pack(turn.caller.keyId, conversation);
    const bytes = requestBytes(turn, stored, conversation);
    return { open: store.open(turnOpened(turn, stored), trace), conversation, bytes };
  }
}
