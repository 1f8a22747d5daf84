// Which turn does a request continue? In: the answer and question keys in the request, and the turns that gave those answers.
// Out: the parent and where in the request its answer stands, or that there is none. It never looks at time of arrival:
// order is the parent link.
import { madeAtMs } from '@backtalk/kit';
import type { TurnOpened } from '@backtalk/proto/facts';
import { isSideRequest, lastWordsOf, type ChatMessage } from './messages.js';

/** A turn that gave an answer which the request contains. */
export interface Candidate {
  readonly turn: string;
  readonly session: string;
  readonly policy: string;
  /** Answer keys of the candidate's own request, oldest first. */
  readonly earlierAnswers: readonly string[];
  /** Key of what was said before its answer; empty where none is known. */
  readonly question: string;
  /** Stream sequence of its completion: later is newer. */
  readonly sequence: number;
  /** The turn that continued it; empty while none did. */
  readonly continuedBy: string;
}

export interface ParentLink {
  readonly turn: string;
  /** Index among the request's assistant messages of the answer that the parent gave. */
  readonly answerIndex: number;
  /** True when another turn continued the parent before. */
  readonly branch: boolean;
}

/**
 * Whether a request of a declared session goes on from an earlier one although the client changed the answer's words: it
 * holds more answers than that one did, and what the user said there.
 *
 * @param answers how many the request holds
 * @param said every text of the request
 */
export function goesOnFrom(
  earlier: Pick<TurnOpened, 'answerKeys' | 'declaredTurnType'>,
  messages: readonly ChatMessage[],
  answers: number,
  said: ReadonlySet<string>,
): boolean {
  if (isSideRequest(earlier.declaredTurnType, messages)) return false;
  const lastWords = lastWordsOf(messages);
  return earlier.answerKeys.length < answers && lastWords !== undefined && said.has(lastWords);
}

/** Gateways' clocks agree within it. */
const clocksApartMs = 2_000;

/**
 * Whether a turn began after a request, which then cannot go on from it: a history from elsewhere may hold the words of an answer that
 * is given only later.
 */
export function beganAfter(turn: string, request: string): boolean {
  const [turnMs, requestMs] = [madeAtMs(turn), madeAtMs(request)];
  return turnMs !== undefined && requestMs !== undefined && turnMs > requestMs + clocksApartMs;
}

/** Length of the longest common suffix: answers nearest to the end tell conversations apart best. */
function equalEarlierAnswers(requestKeys: readonly string[], candidateKeys: readonly string[]): number {
  let equal = 0;
  while (
    equal < requestKeys.length &&
    equal < candidateKeys.length &&
    requestKeys.at(-1 - equal) === candidateKeys.at(-1 - equal)
  ) {
    equal += 1;
  }
  return equal;
}

/** What is nearer to the request comes first: its session, its policy, what was said there, what was not continued, what is new. */
function nearness(
  { session, policy, question, earlierAnswers, continuedBy, sequence }: Candidate,
  request: Asking,
  asked: { readonly question: string; readonly earlier: readonly string[] },
): readonly number[] {
  return [
    request.sessions.includes(session),
    policy === request.policy,
    asked.question !== '' && question === asked.question,
    equalEarlierAnswers(asked.earlier, earlierAnswers),
    continuedBy === '' || continuedBy === request.turn,
    sequence,
  ].map(Number);
}

/** The first of equals. */
function nearest(a: Near, b: Near): Near {
  const at = a.nearness.findIndex((value, index) => value !== b.nearness[index]);
  return (a.nearness[at] ?? 0) >= (b.nearness[at] ?? 0) ? a : b;
}

interface Near {
  readonly candidate: Candidate;
  readonly nearness: readonly number[];
}

/** A request that looks for its parent. */
export interface Asking extends Pick<TurnOpened, 'turn' | 'policy' | 'answerKeys' | 'questionKeys'> {
  /** Of a declared session: by its name, and the one that its name leads to since. Without one: none. */
  readonly sessions: readonly string[];
}

/** The link of a request to its parent. */
export function linkTo(turn: string, parent: string, answerIndex: number, continuedBy: string): ParentLink {
  return { turn: parent, answerIndex, branch: continuedBy !== '' && continuedBy !== turn };
}

/**
 * Whether equal words stand in the request as an example: at the same place in the candidate's own request, after another question than the
 * candidate was asked. In a conversation another answer stood there before, whatever window of it is sent and however its questions are wrapped.
 */
function isExample(
  { question, earlierAnswers, session }: Candidate,
  { answerKeys, sessions }: Asking,
  asked: { readonly question: string; readonly index: number },
): boolean {
  const isOther = question !== '' && asked.question !== '' && question !== asked.question;
  return isOther && earlierAnswers[asked.index] === answerKeys[asked.index] && !sessions.includes(session);
}

/**
 * The latest answer in the request that is ours names the parent. Where several turns gave it, as several attempts at one task do: those
 * of the declared session, then those of the policy that is asked, then the same said before it, more equal earlier answers, not yet
 * continued, the newest.
 *
 * @param asking its `answerKeys` are of every assistant message in it, oldest first
 * @param candidatesOf the turns that gave an answer, itself excluded
 */
export function findParent(
  asking: Asking,
  candidatesOf: (answerKey: string) => readonly Candidate[],
): ParentLink | undefined {
  const { turn, answerKeys, questionKeys } = asking;
  for (let index = answerKeys.length - 1; index >= 0; index -= 1) {
    const earlier = answerKeys.slice(0, index);
    const question = questionKeys.at(index - answerKeys.length - 1) ?? '';
    const [first, ...others] = candidatesOf(answerKeys[index] ?? '')
      .filter((candidate) => candidate.turn !== turn && !isExample(candidate, asking, { question, index }))
      .map((candidate) => ({ candidate, nearness: nearness(candidate, asking, { question, earlier }) }));
    if (first === undefined) continue;
    const { candidate } = others.reduce(nearest, first);
    return linkTo(turn, candidate.turn, index, candidate.continuedBy);
  }
  return undefined;
}
