// Where an opened request belongs: its session, what it waits for, and what it says about the turn that it continues. In:
// the request, the link to its parent, what index and log know of that parent. Out: what to write. Pure.
import type { Consent, TurnContinued, TurnOpened } from '@backtalk/proto/facts';
import { trainsBy, type Trains } from './consent.js';
import { isSideRequest, type ChatMessage } from './messages.js';
import { nextStateOf, saysSomething, textsOf } from './next-state.js';
import type { ParentLink } from './parent.js';

/** A turn as the index knows it. */
export interface TurnEntry {
  readonly turn: string;
  readonly tenant: string;
  readonly user: string;
  readonly policy: string;
  readonly session: string;
  readonly parent: string;
  readonly continuedBy: string;
  /** 0 until its answer is in the log. */
  readonly completedSequence: number;
  /** Of the turn and all before it; nothing until its request is in the index. */
  readonly consent: Trains | undefined;
  /** Answer keys in its own request, the newest few, oldest first; nothing until its request is in the index. */
  readonly earlierAnswers: readonly string[] | undefined;
  /** Key of what was said before its answer, empty where the gateway gave none; nothing until its request is in the index. */
  readonly question: string | undefined;
}

/** What tells a turn apart from others that gave the same answer. */
export interface SaidBefore {
  readonly earlierAnswers: readonly string[];
  readonly question: string;
}

/** So many earlier answers tell apart turns that gave the same one. */
const earlierAnswersMax = 16;

export function saidBeforeAnswer({ answerKeys, questionKeys }: TurnOpened): SaidBefore {
  return { earlierAnswers: answerKeys.slice(-earlierAnswersMax), question: questionKeys.at(-1) ?? '' };
}

/** A request that belongs to no session, or whose session is over, begins one that is named after it. */
export function sessionBegunBy(turn: string): string {
  return `session_${turn.replace(/^turn_/, '')}`;
}

/** The name under which a request waits for whichever answer is given in its session; empty for no session. */
export function answerInSession(session: string): string {
  return session === '' ? '' : `session ${session}`;
}

/** The name under which a request waits for the answer of the turn that its gateway took for its parent. */
export function answerOfTurn(turn: string): string {
  return `turn ${turn}`;
}

/** True when the gateway saw an answer whose completion is not in the log yet: it lies in a spool. */
export function isAheadOfLog(request: TurnOpened, provisionalParent: TurnEntry | undefined): boolean {
  return request.provisionalParent !== '' && (provisionalParent?.completedSequence ?? 0) === 0;
}

/** True when an answer that is on its way could be a newer parent than the one that was found. */
export function couldBeNewer(request: TurnOpened, link: ParentLink | undefined): boolean {
  const newest = request.answerKeys.length - 1;
  return link === undefined ? newest >= 0 && request.declaredSession !== '' : link.answerIndex < newest;
}

/** Empty when neither the client nor the parent names one. */
export function wantedSession(request: TurnOpened, parent: TurnEntry | undefined): string {
  return request.declaredSession === '' ? (parent?.session ?? request.provisionalSession) : request.provisionalSession;
}

export interface Placement {
  readonly entry: SaidBefore & Pick<TurnEntry, 'tenant' | 'user' | 'policy' | 'session' | 'parent' | 'consent'>;
  /** Names of answers that would make the request continue a newer turn. */
  readonly waitsFor: readonly string[];
}

interface Circumstances {
  /** Whether the wanted session is over: the request then begins a new one. */
  readonly isClosed: boolean;
  /** The one that a request began before, after that end; empty for none. */
  readonly successor?: string;
  /** Whether the answer of its provisional parent is not in the log yet. */
  readonly isAhead?: boolean;
  readonly consent: Consent;
}

export function placementOf(
  request: TurnOpened,
  link: ParentLink | undefined,
  parent: TurnEntry | undefined,
  { isClosed, successor = '', isAhead = false, consent }: Circumstances,
): Placement {
  const { tenant, user, policy, answerKeys, declaredSession, provisionalSession, provisionalParent } = request;
  const wanted = wantedSession(request, parent);
  const begun = successor === '' ? sessionBegunBy(request.turn) : successor;
  const session = wanted === '' || isClosed ? begun : wanted;
  const newest = answerKeys.at(-1);
  const waits = newest !== undefined && (parent === undefined || couldBeNewer(request, link));
  // Answers come under the session that their turns are in, which after an end is another one.
  const inSession = declaredSession === '' ? [] : [...new Set([provisionalSession, session])].map(answerInSession);
  return {
    entry: {
      tenant,
      user,
      policy,
      session,
      parent: parent?.turn ?? '',
      consent: trainsBy(consent),
      ...saidBeforeAnswer(request),
    },
    // The newest answer may be a client's own, begun for the model to go on from.
    waitsFor: waits ? [newest, ...inSession, ...(isAhead ? [answerOfTurn(provisionalParent)] : [])] : [],
  };
}

/** A turn is trained on with its next state: both must agree. */
export function nextConsent(parent: TurnEntry, consent: Consent): Consent {
  const parentTrains = parent.consent ?? 'unknown';
  if (parentTrains !== 'yes') return { train: false, source: parentTrains === 'no' ? 'session' : 'unknown' };
  return consent;
}

/** A request, with its messages. */
export interface ReadRequest {
  readonly message: TurnOpened;
  readonly messages: readonly ChatMessage[];
}

/**
 * The next state of the parent, or undefined when the request adds nothing that anybody said.
 *
 * @param consent of the request's own turn
 * @param before the parent's own request; undefined when it has left the log
 */
export function continuationOf(
  { message: request, messages }: ReadRequest,
  { answerIndex }: ParentLink,
  { parent, consent }: { readonly parent: TurnEntry; readonly consent: Consent },
  before: ReadRequest | undefined,
): TurnContinued | undefined {
  if (isSideRequest(request.declaredTurnType, messages)) return undefined;
  const nextState = nextStateOf(messages, answerIndex, request.declaredTurnType, textsOf(before?.messages ?? []));
  if (!saysSomething(nextState)) return undefined;
  const words = nextConsent(parent, consent);
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
    consent: words,
    act: '',
  };
}
