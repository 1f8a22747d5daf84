// Links a request to the turn that it continues, and publishes that turn's next state. Called when a request opens, and
// again when an answer that it waited for is in the log. Safe to repeat: the fact is stored once, the index converges.
import type { TurnContinued, TurnOpened } from '@backtalk/proto/facts';
import { asBacktalkError, type StoredFact, type Trace } from '@backtalk/kit';
import { lastWordsOf, readMessages } from '../domain/messages.js';
import { nextStateOf, saysSomething, textsOf } from '../domain/next-state.js';
import { findParent, goesOnFrom, type Candidate, type ParentLink } from '../domain/parent.js';
import { isSideRequest } from '../domain/turn-type.js';
import { collectorErrors } from '../errors.js';
import type { Events } from '../events.js';
import type { TurnLog } from '../outputs/turn-log.js';
import type { Owner, TurnEntry, TurnIndex } from '../outputs/turn-index.js';

export interface LinkParts {
  readonly index: TurnIndex;
  readonly log: TurnLog;
  readonly events: Events;
}

/** Opened turns as the linker needs them, from a fact in hand or from the log. */
export type OpenedTurn = Pick<StoredFact<'turnOpened'>, 'message' | 'sequence' | 'timeMs' | 'trace'>;

async function candidatesFor(parts: LinkParts, owner: Owner, answerKey: string): Promise<Candidate[]> {
  const turns = await parts.index.turnsWithAnswer(owner, answerKey);
  const ambiguous = turns.length > 1;
  const entries = await Promise.all(
    turns.map(async (turn) => {
      const entry = await parts.index.turn(turn);
      if (entry === undefined) return undefined;
      const earlierAnswers = ambiguous ? ((await parts.log.opened(owner, turn))?.message.answerKeys ?? []) : [];
      return {
        turn,
        earlierAnswers,
        sequence: entry.completedSequence,
        continuedBy: entry.continuedBy === '' ? undefined : entry.continuedBy,
      };
    }),
  );
  return entries.filter((entry) => entry !== undefined);
}

async function parentOf(parts: LinkParts, opened: TurnOpened): Promise<ParentLink | undefined> {
  const known = new Map<string, Candidate[]>();
  for (const key of new Set(opened.answerKeys)) known.set(key, await candidatesFor(parts, opened, key));
  return findParent(opened.turn, opened.answerKeys, (key) => known.get(key) ?? []);
}

/**
 * The turn of the same declared session that a request goes on from, for clients that change the words of our answers
 * before they send them back. A session that nobody declared is found by its answers alone.
 */
async function parentInSession({ index, log }: LinkParts, opened: OpenedTurn): Promise<ParentLink | undefined> {
  const request = opened.message;
  if (request.declaredSession === '' || request.answerKeys.length === 0) return undefined;
  const said = textsOf(readMessages(await log.messages(request)));
  for (const turn of await index.sessionAnswers(request.provisionalSession)) {
    const before = turn === request.turn ? undefined : await log.opened(request, turn);
    if (before === undefined || before.sequence > opened.sequence) continue;
    const { answerKeys, declaredTurnType } = before.message;
    const read = readMessages(await log.messages(before.message));
    if (isSideRequest(declaredTurnType, read)) continue;
    if (!goesOnFrom({ answers: answerKeys.length, lastWords: lastWordsOf(read) }, request.answerKeys.length, said))
      continue;
    const continuedBy = (await index.turn(turn))?.continuedBy ?? '';
    return { turn, answerIndex: answerKeys.length, branch: continuedBy !== '' && continuedBy !== request.turn };
  }
  return undefined;
}

/** By the newest of our answers in it; by its declared session where that leads to a newer one. */
async function linkOf(parts: LinkParts, opened: OpenedTurn): Promise<ParentLink | undefined> {
  const byAnswer = await parentOf(parts, opened.message);
  if (byAnswer !== undefined && byAnswer.answerIndex === opened.message.answerKeys.length - 1) return byAnswer;
  const bySession = await parentInSession(parts, opened);
  return (bySession?.answerIndex ?? -1) > (byAnswer?.answerIndex ?? -1) ? bySession : byAnswer;
}

/** The name under which a request waits for whichever answer is given in its session; empty for no session. */
export function answerInSession(session: string): string {
  return session === '' ? '' : `session ${session}`;
}

/** True when the gateway saw an answer whose completion is not in the log yet: it lies in a spool. */
async function mustWait(parts: LinkParts, opened: TurnOpened): Promise<boolean> {
  if (opened.provisionalParent === '') return false;
  const parent = await parts.index.turn(opened.provisionalParent);
  return parent === undefined || parent.completedSequence === 0;
}

async function sessionAfter(parts: LinkParts, opened: TurnOpened, parent: TurnEntry | undefined): Promise<string> {
  const wanted =
    opened.declaredSession === '' ? (parent?.session ?? opened.provisionalSession) : opened.provisionalSession;
  const fresh = `session_${opened.turn.replace(/^turn_/, '')}`;
  if (wanted === '') return fresh;
  return (await parts.index.isClosed(wanted)) ? fresh : wanted;
}

interface Continuation {
  readonly fact: TurnContinued;
  /** Of the turn that is continued: what is learned from it goes on in its trace. */
  readonly trace: Trace;
}

/** The next state of the parent, or undefined when the request adds nothing that anybody said. */
async function continuedFact(
  parts: LinkParts,
  opened: OpenedTurn,
  link: ParentLink,
  parent: TurnEntry,
): Promise<Continuation | undefined> {
  const request = opened.message;
  const [messages, before] = await Promise.all([parts.log.messages(request), parts.log.opened(request, parent.turn)]);
  const read = readMessages(messages);
  if (isSideRequest(request.declaredTurnType, read)) return undefined;
  const earlier =
    before === undefined ? new Set<string>() : textsOf(readMessages(await parts.log.messages(before.message)));
  const nextState = nextStateOf(read, link.answerIndex, request.declaredTurnType, earlier);
  if (!saysSomething(nextState)) return undefined;
  const train = parent.train && (before?.message.consent?.train ?? true) && (request.consent?.train ?? true);
  const fact = {
    turn: parent.turn,
    tenant: request.tenant,
    user: request.user,
    policy: parent.policy,
    session: parent.session,
    parent: parent.parent,
    continuedBy: request.turn,
    nextState,
    main: !isSideRequest(before?.message.declaredTurnType ?? '', []),
    consent: { train, source: train ? 'default' : 'session' },
  };
  return { fact, trace: before?.trace ?? opened.trace };
}

async function publishContinuation(
  parts: LinkParts,
  opened: OpenedTurn,
  link: ParentLink,
  parent: TurnEntry,
): Promise<void> {
  if (link.branch) {
    parts.events.branched();
    return;
  }
  const continuation = await continuedFact(parts, opened, link, parent);
  if (continuation === undefined) {
    parts.events.addedNothing();
    return;
  }
  const { fact, trace } = continuation;
  const stored = await parts.log.publishContinued(fact, trace, opened.trace);
  await parts.index.putTurn(parent.turn, { continuedBy: stored.continuedBy });
  if (stored.continuedBy !== opened.message.turn) {
    parts.events.branched();
    return;
  }
  await parts.index.addContinued(parent.session, parent.turn, parent.completedSequence);
  parts.events.continued(fact);
}

/** Whether all answers are in the index that the log had before a sequence. */
export type AnswersTaken = (sequence: number) => Promise<boolean>;
const allTaken: AnswersTaken = async () => Promise.resolve(true);

/**
 * Links one opened turn. Resolves once everything that follows from it is stored. Requests and answers come through two
 * consumers: where the newest answer in the request is not known, an older one counts only when no answer is on its way.
 */
export async function linkTurn(parts: LinkParts, opened: OpenedTurn, taken: AnswersTaken = allTaken): Promise<void> {
  const { message, sequence, timeMs } = opened;
  const lastKey = message.answerKeys.at(-1);
  const waits = await mustWait(parts, message);
  const link = waits ? undefined : await linkOf(parts, opened);
  const isOlder = link !== undefined && link.answerIndex < message.answerKeys.length - 1;
  const isLost = link === undefined && message.declaredSession !== '' && lastKey !== undefined && !waits;
  if ((isOlder || isLost) && !(await taken(sequence))) throw collectorErrors.answersBehind({ turn: message.turn });
  const parent = link === undefined ? undefined : await parts.index.turn(link.turn);
  if ((parent === undefined || isOlder) && lastKey !== undefined) {
    await parts.index.wait(message, lastKey, message.turn);
    if (message.declaredSession !== '')
      await parts.index.wait(message, answerInSession(message.provisionalSession), message.turn);
    parts.events.waits();
  }
  const session = await sessionAfter(parts, message, parent);
  const { tenant, user, policy } = message;
  await parts.index.putTurn(message.turn, {
    tenant,
    user,
    policy,
    session,
    parent: parent?.turn ?? '',
    train: (message.consent?.train ?? true) && (parent?.train ?? true),
  });
  await parts.index.touchSession({ session, tenant, user, policy, lastMs: timeMs });
  if (link !== undefined && parent !== undefined) await publishContinuation(parts, opened, link, parent);
}

/** The log keeps turns for a while only: what a request goes on from may have left it. */
const goneForGood: ReadonlySet<string> = new Set(['turn_missing', 'blob_missing']);

/** Links a turn of the log again. What can never be linked is passed over: its own delivery has said so. */
export async function relinkTurn(parts: LinkParts, owner: Owner, turn: string): Promise<void> {
  try {
    const opened = await parts.log.opened(owner, turn);
    if (opened !== undefined) await linkTurn(parts, opened);
  } catch (thrown) {
    const error = asBacktalkError(thrown);
    if (error.retry !== 'never' && !goneForGood.has(error.code)) throw error;
  }
}
