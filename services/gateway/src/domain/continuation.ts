// Which earlier turn does this request seem to continue?
//
// In: the answer and question keys of the request, and what is remembered of the turns that gave those answers. Out: the
// likely parent, or none. The newest answer that is known decides; among turns that gave the same answer, one of the declared
// session, then of the policy that is asked, then the one that was asked the same, then the one with more equal earlier answers, then
// the newest. The collector decides for good. Pure.

export interface RememberedTurn {
  readonly turn: string;
  readonly session: string;
  readonly policy: string;
  readonly train: boolean;
  /** Keys of the answers before this one, oldest first, at most `earlierKeysMax`. */
  readonly earlier: readonly string[];
  /** Key of what was said before the turn's answer; empty where none is known. */
  readonly question: string;
  /** The turn's own messages, so that the next request can be stored as a difference. */
  readonly conversation: RememberedConversation;
}

export interface RememberedConversation {
  readonly messages: number;
  /** Digest of those messages as JSON. */
  readonly digest: string;
  /** How many differences lie between this turn's stored messages and whole ones. */
  readonly depth: number;
}

const earlierKeysMax = 8;
/** Than all earlier answers can be equal. */
const more = earlierKeysMax + 1;
/** Older answers than these are not looked up: an agent that cut its history so far has begun something new. */
export const lookedUpKeysMax = 4;

/** The keys to look up, newest first. */
export function keysToLookUp(answerKeys: readonly string[]): string[] {
  const said = answerKeys.filter((key) => key !== '');
  return [...new Set(said.slice(-lookedUpKeysMax).reverse())];
}

/** A request that looks for its parent. */
export interface RequestKeys {
  readonly policy: string;
  /** Of a client's own name; undefined where it gave none. */
  readonly session: string | undefined;
  readonly answerKeys: readonly string[];
  /** Of what was said before the newest of those answers, and, last, at the end. */
  readonly questionKeys: readonly string[];
}

/** `remembered[i]` belongs to `looked[i]` of `keysToLookUp`, newest turn first. */
export function likelyParent(
  { policy, session, answerKeys, questionKeys }: RequestKeys,
  looked: readonly string[],
  remembered: readonly (readonly RememberedTurn[])[],
): RememberedTurn | undefined {
  for (const [index, key] of looked.entries()) {
    const at = answerKeys.lastIndexOf(key);
    const before = answerKeys.slice(0, at);
    const question = questionKeys.at(at - answerKeys.length - 1) ?? '';
    // Examples that come with each request stood in the turn's own, too, at the same place, which is not known of long ones.
    const isExample = ({ question: asked, earlier, session: of }: RememberedTurn) => {
      const isOther = question !== '' && asked !== '' && asked !== question && of !== session;
      return isOther && (earlier.length < earlierKeysMax ? earlier[at] === key : earlier.includes(key));
    };
    const candidates = (remembered[index] ?? []).filter((candidate) => !isExample(candidate));
    if (candidates.length === 0) continue;
    const nearness = (candidate: RememberedTurn): number =>
      4 * more * Number(candidate.session === session) +
      2 * more * Number(candidate.policy === policy) +
      more * Number(question !== '' && candidate.question === question) +
      equalFromTheEnd(candidate.earlier, before);
    // Of equals the first.
    return candidates.reduce((best, other) => (nearness(other) > nearness(best) ? other : best));
  }
  return undefined;
}

export function earlierKeys(answerKeys: readonly string[]): readonly string[] {
  return answerKeys.slice(-earlierKeysMax);
}

function equalFromTheEnd(left: readonly string[], right: readonly string[]): number {
  const most = Math.min(left.length, right.length);
  let equal = 0;
  while (equal < most && left[left.length - 1 - equal] === right[right.length - 1 - equal]) equal += 1;
  return equal;
}
