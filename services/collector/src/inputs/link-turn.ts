// Links a request to the turn that it continues, and publishes that turn's next state. Called when a request opens, and
// again when an answer that it waited for is in the log. Safe to repeat: the fact is stored once, the index converges.

import type { TurnContinued, TurnOpened } from '@backtalk/proto/facts';
import { asBacktalkError, type StoredFact } from '@backtalk/kit';
import { readMessages } from '../domain/messages.js';
import { nextStateOf, saysSomething, textsOf } from '../domain/next-state.js';
import { findParent, type Candidate, type ParentLink } from '../domain/parent.js';
import { isSideRequest } from '../domain/turn-type.js';
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

/** The next state of the parent, or undefined when the request adds nothing that anybody said. */
async function continuedFact(
  parts: LinkParts,
  opened: OpenedTurn,
  link: ParentLink,
  parent: TurnEntry,
): Promise<TurnContinued | undefined> {
  const request = opened.message;
  const [messages, before] = await Promise.all([parts.log.messages(request), parts.log.opened(request, parent.turn)]);
  const read = readMessages(messages);
  if (isSideRequest(request.declaredTurnType, read)) return undefined;
  const earlier =
    before === undefined ? new Set<string>() : textsOf(readMessages(await parts.log.messages(before.message)));
  const nextState = nextStateOf(read, link.answerIndex, request.declaredTurnType, earlier);
  if (!saysSomething(nextState)) return undefined;
  const train = parent.train && (before?.message.consent?.train ?? true) && (request.consent?.train ?? true);
  return {
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
  const fact = await continuedFact(parts, opened, link, parent);
  if (fact === undefined) {
    parts.events.addedNothing();
    return;
  }
  const stored = await parts.log.publishContinued(fact, opened.trace);
  await parts.index.putTurn(parent.turn, { continuedBy: stored.continuedBy });
  if (stored.continuedBy !== opened.message.turn) {
    parts.events.branched();
    return;
  }
  await parts.index.addContinued(parent.session, parent.turn, parent.completedSequence);
  parts.events.continued(fact);
}

/** Links one opened turn. Resolves once everything that follows from it is stored. */
export async function linkTurn(parts: LinkParts, opened: OpenedTurn): Promise<void> {
  const { message, timeMs } = opened;
  const lastKey = message.answerKeys.at(-1);
  const waits = await mustWait(parts, message);
  const link = waits ? undefined : await parentOf(parts, message);
  const parent = link === undefined ? undefined : await parts.index.turn(link.turn);
  if (parent === undefined && lastKey !== undefined) {
    await parts.index.wait(message, lastKey, message.turn);
    parts.events.waits();
  }
  const session = await sessionAfter(parts, message, parent);
  const { tenant, user, policy } = message;
  await parts.index.putTurn(message.turn, {
    ...{ tenant, user, policy, session },
    parent: parent?.turn ?? '',
    train: (message.consent?.train ?? true) && (parent?.train ?? true),
  });
  await parts.index.touchSession({ session, tenant, user, policy, lastMs: timeMs });
  if (link !== undefined && parent !== undefined) await publishContinuation(parts, opened, link, parent);
}

/** Links a turn of the log again. What can never be linked is passed over: its own delivery has said so. */
export async function relinkTurn(parts: LinkParts, owner: Owner, turn: string): Promise<void> {
  try {
    const opened = await parts.log.opened(owner, turn);
    if (opened !== undefined) await linkTurn(parts, opened);
  } catch (thrown) {
    const error = asBacktalkError(thrown);
    if (error.retry !== 'never') throw error;
  }
}
