// Keeps the record of one turn: opened when its request arrives, completed when its answer has ended in any way.
//
// In: a turn, its messages, then its answer. Out: stored facts, and an answer index that knows the answer. Writing the
// messages down runs beside the engine's work; nothing here delays the first token.
import { asBacktalkError } from '@backtalk/kit';
import { writeConversation, type WrittenConversation } from '../domain/conversation.js';
import { sessionOfTurn } from '../domain/session-name.js';
import { areLogprobsUntrue, type Ending } from '../domain/trainability.js';
import { remembered, turnCompleted, turnOpened, type Turn, type TurnAnswer } from '../domain/turn.js';
import type { OpenTurn } from '../outputs/turn-store.js';
import type { Exchange } from './answer-turn.js';
import type { Parts } from './parts.js';

/** Failures that are the client's own doing. */
const clientsDoing = new Set(['client_gone', 'reader_too_slow', 'request_aborted']);

export class TurnRecord {
  private readonly written: Promise<{ readonly open: OpenTurn; readonly conversation: WrittenConversation }>;

  constructor(
    private readonly parts: Parts,
    private readonly exchange: Exchange,
  ) {
    this.written = this.writeOpened();
    // A failure here is reported when the turn completes; until then nothing waits for it.
    this.written.catch(() => undefined);
  }

  /** Resolves when the turn is stored and its answer can be recognised. Throws `capture_unavailable`. */
  async complete(turn: Turn, answer: TurnAnswer): Promise<void> {
    const { events, clock, access, serving } = this.parts;
    const { store, index } = this.parts.turns;
    const { trace } = this.exchange;
    const sinceMs = clock.now();
    const { open, conversation } = await this.written;
    const logprobsUntrue = areLogprobsUntrue(serving.fleet.capabilitiesOf(answer.engine?.url));
    const completed = turnCompleted(turn, { ...answer, logprobsUntrue });
    const { tenant, user, keyId, limits } = turn.caller;
    const facts = [store.fact('turnCompleted', completed, trace)];
    if (turn.declared.done) {
      facts.push(store.fact('sessionEnded', { session: turn.session, tenant, user, turn: turn.id }, trace));
      // A name may be used again after its end, and each end is stored once: the turn that says so tells this one.
      const session = sessionOfTurn(turn.id);
      if (session !== turn.session)
        facts.push(store.fact('sessionEnded', { session, tenant, user, turn: turn.id }, trace));
    }
    const usage = { promptTokens: 0, completionTokens: 0, ...completed.usage };
    const [where] = await Promise.all([
      store.complete(open, facts),
      index.remember(completed.answerKey, remembered(turn, conversation.remembered), {
        tenant,
        user,
        session: turn.session,
      }),
      limits.tokensPerMinute === undefined
        ? undefined
        : access.minutes.addTokens(keyId, usage.promptTokens + usage.completionTokens),
    ]);
    events.turnStored(turn.id, where, (clock.now() - sinceMs) / 1000);
    events.turnEnded(turn.id, completed.untrainableReasons, usage);
  }

  /** Records an answer that did not come to its end. Its client knows, or is gone: this goes on in the background. */
  breakOff(turn: Turn, answer: Pick<TurnAnswer, 'capture' | 'engine'>, thrown: unknown): void {
    const error = asBacktalkError(thrown);
    const isClients = this.exchange.signal.aborted || clientsDoing.has(error.code);
    const ending: Ending = isClients ? 'aborted' : 'engine_failed';
    if (!isClients && (error.status ?? 500) >= 500) this.parts.events.engineFailed(turn.id, error);
    this.parts.turns.background.add(this.complete(turn, { ...answer, ending }));
  }

  private async writeOpened() {
    const { turn, request, trace } = this.exchange;
    const { store } = this.parts.turns;
    const conversation = writeConversation(request.messages, request.tools, turn.parent);
    const fact = turnOpened(turn, await store.encode(conversation));
    return { open: store.open(fact, trace), conversation };
  }
}
