// Keeps the record of one turn: opened when its request arrives, completed when its answer has ended in any way.
//
// In: a turn, its messages, then its answer. Out: stored facts, and an answer index that knows the answer. Writing the
// messages down runs beside the engine's work; nothing here delays the first token.
import type { Trace } from '@backtalk/kit';
import type { ChatRequest } from '../domain/chat-request.js';
import { writeConversation, type WrittenConversation } from '../domain/conversation.js';
import { areLogprobsUntrue } from '../domain/trainability.js';
import { remembered, turnCompleted, turnOpened, type Turn, type TurnAnswer } from '../domain/turn.js';
import type { OpenTurn } from '../outputs/turn-store.js';
import type { Parts } from './parts.js';

export class TurnRecord {
  private readonly written: Promise<{ readonly open: OpenTurn; readonly conversation: WrittenConversation }>;

  private constructor(
    private readonly parts: Parts,
    turn: Turn,
    request: ChatRequest,
    private readonly trace: Trace,
  ) {
    this.written = this.writeOpened(turn, request);
    // A failure here is told when the turn completes; until then nobody waits for it.
    this.written.catch(() => undefined);
  }

  static open(parts: Parts, turn: Turn, request: ChatRequest, trace: Trace): TurnRecord {
    return new TurnRecord(parts, turn, request, trace);
  }

  /** Resolves when the turn is stored and its answer can be recognised. Throws `capture_unavailable`. */
  async complete(turn: Turn, answer: TurnAnswer): Promise<void> {
    const { events, store, clock, minutes, fleet } = this.parts;
    const sinceMs = clock.now();
    const { open, conversation } = await this.written;
    const logprobsUntrue = areLogprobsUntrue(fleet.capabilitiesOf(answer.engine?.url));
    const completed = turnCompleted(turn, { ...answer, logprobsUntrue });
    const facts = [store.fact('turnCompleted', completed, this.trace)];
    if (turn.declared.done) facts.push(store.fact('sessionEnded', this.ended(turn), this.trace));
    const usage = { promptTokens: 0, completionTokens: 0, ...completed.usage };
    const [where] = await Promise.all([
      store.complete(open, facts),
      this.parts.index.remember(completed.answerKey, remembered(turn, conversation.remembered), {
        tenant: turn.caller.tenant,
        user: turn.caller.user,
        session: turn.session,
      }),
      turn.caller.limits.tokensPerMinute === undefined
        ? undefined
        : minutes.addTokens(turn.caller.keyId, usage.promptTokens + usage.completionTokens),
    ]);
    events.turnStored(turn.id, where, (clock.now() - sinceMs) / 1000);
    events.turnEnded(turn.id, completed.untrainableReasons, usage);
  }

  private async writeOpened(turn: Turn, request: ChatRequest) {
    const conversation = writeConversation(request.messages, request.tools, turn.parent);
    const fact = turnOpened(turn, await this.parts.encode(conversation));
    return { open: this.parts.store.open(fact, this.trace), conversation };
  }

  private ended({ session, caller, id }: Turn) {
    return { session, tenant: caller.tenant, user: caller.user, turn: id };
  }
}
