// Links a request to the turn that it continues, and publishes that turn's next state: reads what index and log know, has
// the domain decide, writes. Called when a request opens, and again when an answer that it waited for is in the log. Safe
// to repeat: the fact is stored once, the index converges.
import { asBacktalkError } from '@backtalk/kit';
import type { Consent } from '@backtalk/proto/facts';
import { textsOf } from '../domain/next-state.js';
import { beganAfter, findParent, goesOnFrom, linkTo, type Candidate, type ParentLink } from '../domain/parent.js';
import {
  continuationOf,
  couldBeNewer,
  isAheadOfLog,
  placementOf,
  saidBeforeAnswer,
  wantedSession,
  type SaidBefore,
  type TurnEntry,
} from '../domain/placement.js';
import { isSetAside, mayBeSetAside, regenerationOf, type AskedTurn } from '../domain/regenerated.js';
import { collectorErrors } from '../errors.js';
import type { Events } from '../events.js';
import type { CollectorLog, OpenedTurn, RequestReader } from '../outputs/collector-log.js';
import type { Owner, TurnIndex } from '../outputs/turn-index.js';
import { establishConsent, keepConsent } from './establish-consent.js';

export interface LinkParts {
  readonly index: TurnIndex;
  readonly log: CollectorLog;
  readonly events: Events;
}

/** Whether all answers are in the index that the log had before a sequence. */
export type AnswersTaken = (sequence: number) => Promise<boolean>;

/**
 * Links one opened turn. Resolves once everything that follows from it is stored. Requests and answers come through two
 * consumers: where the newest answer in the request is not known, an older one counts only when no answer is on its way.
 */
export async function linkTurn(
  parts: LinkParts,
  opened: OpenedTurn,
  taken: AnswersTaken = () => Promise.resolve(true),
): Promise<void> {
  const { index, log, events } = parts;
  const { message: request, sequence, timeMs } = opened;
  const reader = log.around(opened);
  const isAhead = isAheadOfLog(request, await index.turn(request.provisionalParent));
  const sessions = await declaredSessions(index, request);
  const link = isAhead ? undefined : await findLink(index, reader, opened, sessions);
  if (!isAhead && couldBeNewer(request, link) && !(await taken(sequence)))
    throw collectorErrors.answersBehind({ turn: request.turn });
  const parent = link && (await index.turn(link.turn));
  const consent = await establishConsent(parts, request, parent);
  const wanted = wantedSession(request, parent);
  const isClosed = (await index.isClosed(wanted)) || (await wasClosed(parts, opened, wanted));
  // A client's own name leads to one session after another.
  const isNamed = isClosed && request.declaredSession !== '';
  const successor = isNamed ? await index.openSuccessor(wanted) : '';
  const { entry, waitsFor } = placementOf(request, link, parent, { isClosed, successor, isAhead, consent });
  if (isNamed) await index.putSuccessor(wanted, entry.session);
  await keepConsent(parts, opened, entry.session, consent);
  for (const awaited of waitsFor) await index.wait(request, awaited, request.turn);
  if (waitsFor.length > 0) events.linked('waits_for_answer');
  await index.putTurn(request.turn, entry);
  await index.touchSession(entry.session, request, timeMs);
  // Its answer may be in the log before its request is placed.
  const { completedSequence = 0 } = (await index.turn(request.turn)) ?? {};
  if (completedSequence > 0) await index.addSessionAnswer(entry.session, request.turn, completedSequence);
  if (link?.branch === true && parent !== undefined) events.linked('branch');
  else if (link !== undefined && parent !== undefined)
    await continueTurn(parts, reader, { opened, consent }, link, parent);
}

/** A client's name may be used again when the index has let go of what bore it: that it ended is in the log. */
async function wasClosed({ index, log }: LinkParts, { message: request, sequence }: OpenedTurn, session: string) {
  if (request.declaredSession === '' || (await index.session(session)) !== undefined) return false;
  if (!(await log.wasClosed(request, session, sequence))) return false;
  await index.markClosed(session);
  return true;
}

/** A conversation whose last answers are all unknown has begun anew: older ones are not asked for. */
const askedKeysMax = 8;

function newestKeys(answerKeys: readonly string[]): string[] {
  const newest = new Set<string>();
  for (let at = answerKeys.length - 1; at >= 0 && newest.size < askedKeysMax; at -= 1) newest.add(answerKeys[at] ?? '');
  newest.delete('');
  return [...newest];
}

/** The turns of one person that gave an answer, without the one that asks. */
async function candidatesFor(index: TurnIndex, reader: RequestReader, request: OpenedTurn['message'], key: string) {
  const answered = (await index.turnsWithAnswer(request, key)).filter(
    (turn) => turn !== request.turn && !beganAfter(turn, request.turn),
  );
  const candidates = answered.map(async (turn): Promise<Candidate[]> => {
    const entry = await index.turn(turn);
    if (entry === undefined) return [];
    const { completedSequence: sequence, continuedBy, session, policy } = entry;
    const said = await saidBefore(index, reader, entry);
    return [{ turn, session, policy, ...said, sequence, continuedBy }];
  });
  return (await Promise.all(candidates)).flat();
}

/** One person's turns that gave the same answer may be many and large: what the index knows is not read from the log. */
async function saidBefore(
  index: TurnIndex,
  reader: RequestReader,
  { turn, earlierAnswers, question }: TurnEntry,
): Promise<SaidBefore> {
  if (earlierAnswers !== undefined && question !== undefined) return { earlierAnswers, question };
  const request = await reader.opened(turn);
  if (request === undefined) return { earlierAnswers: earlierAnswers ?? [], question: '' };
  const read = saidBeforeAnswer(request.message);
  await index.putTurn(turn, read);
  return read;
}

/** The sessions that a client's own name stands for, the newest first: after an end it leads to another one. None without a name. */
async function declaredSessions(
  index: TurnIndex,
  { declaredSession, provisionalSession }: OpenedTurn['message'],
): Promise<string[]> {
  if (declaredSession === '') return [];
  const successor = await index.successor(provisionalSession);
  return successor === '' ? [provisionalSession] : [successor, provisionalSession];
}

/** By the newest of our answers in the request; by its declared session where that leads to a newer one. */
async function findLink(
  index: TurnIndex,
  reader: RequestReader,
  opened: OpenedTurn,
  sessions: readonly string[],
): Promise<ParentLink | undefined> {
  const { turn, answerKeys } = opened.message;
  const known = new Map<string, Candidate[]>();
  for (const key of newestKeys(answerKeys)) {
    const candidates = await candidatesFor(index, reader, opened.message, key);
    known.set(key, candidates);
    // The newest answer that is known decides.
    if (candidates.length > 0) break;
  }
  const byAnswer = findParent({ ...opened.message, sessions }, (key) => known.get(key) ?? []);
  const found = byAnswer?.answerIndex ?? -1;
  if (sessions.length === 0 || found === answerKeys.length - 1) return byAnswer;
  // Some clients change the words of our answers before they send them back.
  const said = textsOf(await reader.messages(opened));
  const answers = await Promise.all(sessions.map((session) => index.sessionAnswers(session)));
  for (const earlier of new Set(answers.flat())) {
    const entry = earlier === turn ? undefined : await index.turn(earlier);
    // As many answers as the request holds: it goes on from another one.
    if (entry === undefined || (entry.earlierAnswers ?? []).length >= answerKeys.length) continue;
    const before = await reader.opened(earlier);
    if (before === undefined || before.sequence > opened.sequence) continue;
    if (!goesOnFrom(before.message, await reader.messages(before), answerKeys.length, said)) continue;
    const answerIndex = before.message.answerKeys.length;
    return answerIndex > found ? linkTo(turn, earlier, answerIndex, entry.continuedBy) : byAnswer;
  }
  return byAnswer;
}

async function continueTurn(
  { index, log, events }: LinkParts,
  reader: RequestReader,
  { opened, consent }: { readonly opened: OpenedTurn; readonly consent: Consent },
  link: ParentLink,
  parent: TurnEntry,
): Promise<void> {
  const read = async (fact: OpenedTurn) => ({ message: fact.message, messages: await reader.messages(fact) });
  const [request, before] = await Promise.all([read(opened), reader.opened(parent.turn)]);
  const fact = continuationOf(request, link, { parent, consent }, before && (await read(before)));
  if (fact === undefined) return events.linked('nothing_said');
  // What is learned from the continued turn goes on in that turn's trace.
  const continuedBy = await log.publishContinued(fact, before?.trace ?? opened.trace, opened.trace);
  await index.putTurn(parent.turn, { continuedBy });
  if (continuedBy !== opened.message.turn) return events.linked('branch');
  await index.addContinued(parent.session, parent.turn, parent.completedSequence);
  events.continued(fact);
  if (before === undefined || !fact.main) return;
  const { sequence, timeMs } = before;
  const chosen = { entry: parent, sequence, timeMs, messages: (await read(before)).messages };
  await setAside({ index, log, events }, reader, chosen, request.message.answerKeys[link.answerIndex] ?? '', consent);
}

/** The person went on from one answer: those that were given to the same question before it were not what they wanted. */
async function setAside(
  { index, log, events }: LinkParts,
  reader: RequestReader,
  chosen: AskedTurn,
  answerKey: string,
  consent: Consent,
): Promise<void> {
  const { session } = chosen.entry;
  const candidates = (await index.sessionAnswers(session)).filter((turn) => turn !== chosen.entry.turn);
  if (candidates.length === 0) return;
  const saidTheSame = new Set(await index.turnsWithAnswer(chosen.entry, answerKey));
  for (const turn of candidates) {
    const entry = saidTheSame.has(turn) ? undefined : await index.turn(turn);
    if (entry === undefined || !mayBeSetAside(entry, chosen)) continue;
    const opened = await reader.opened(turn);
    if (opened === undefined) continue;
    const { sequence, timeMs, trace } = opened;
    const earlier = { entry, sequence, timeMs, messages: await reader.messages(opened) };
    if (!isSetAside(earlier, chosen)) continue;
    const fact = regenerationOf(earlier, chosen.entry, consent);
    await index.putTurn(turn, { continuedBy: await log.publishContinued(fact, trace, trace) });
    await index.addContinued(session, turn, entry.completedSequence);
    events.continued(fact);
  }
}

/** The log keeps turns for a while only: what a request goes on from may have left it. */
const goneForGood: ReadonlySet<string> = new Set(['turn_missing', 'blob_missing']);

/** Links a turn of the log again. What can never be linked is passed over: its own delivery has said so. */
export async function relinkTurn(parts: LinkParts, owner: Owner, turn: string): Promise<void> {
  await unlessGone(async () => {
    const opened = await parts.log.opened(owner, turn);
    if (opened !== undefined) await linkTurn(parts, opened);
  });
}

/** Whether what was needed has left the log, or cannot be read. */
export function isGone(thrown: unknown): boolean {
  const error = asBacktalkError(thrown);
  return error.retry === 'never' || goneForGood.has(error.code);
}

/** Nothing where what is needed has left the log, or cannot be read. */
export async function unlessGone<T>(read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read();
  } catch (thrown) {
    if (!isGone(thrown)) throw thrown;
    return undefined;
  }
}
