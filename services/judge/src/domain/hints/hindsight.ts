// What the answer should have been, as the person who read it says. In: a turn with its next state, the votes, the verdict. Out: the
// person's own words, or an instruction that the judge wrote from them, and whether it stands beyond the turn; what was left out, by
// reason. Where no person spoke there is none: tools, files and pages give no hindsight. Pure.
import { templateTokenIn, wholeWords, wordingCharsMax } from '@backtalk/kit';
import type { Material } from '../material.js';
import { markedWords, ownWords, wholeSentences } from '../own-words.js';
import { saidWords } from '../said-words.js';
import { sentenceEnd } from '../sentence-ends.js';
import type { CastVote } from '../verdict.js';
import type { Verdict } from '../verdict-value.js';
import { chooseHint, type HintChoice } from './choose.js';
import { startsLasting } from './lasting-words.js';
import { isSaidBy } from './said-by.js';
import { sentencesOf, type StandingSentences } from './stands.js';

/** Why a hint is not taken: the person said nothing of the kind, votes disagree, it would break the teacher's prompt. */
export const dropReasons = ['not_said', 'disputed', 'template_token'] as const;
export type DropReason = (typeof dropReasons)[number];

export interface Hindsight {
  /** Empty where there is none. */
  readonly hint: string;
  /** What may be shown in its place. */
  readonly others?: readonly string[];
  readonly stands: boolean;
  /** The sentences that stand, as far as a lesson can hold them, where the hint is not just these. */
  readonly wished?: string;
  /** An agent told it of the person: it is no wish of theirs beyond the turn. */
  readonly told?: true;
  /** One entry for each hint that was left out. */
  readonly dropped: readonly DropReason[];
}

/** How a person's words are taken. */
export interface Hearing {
  readonly choice: HintChoice;
  readonly standing: StandingSentences;
}

export interface Judged {
  readonly verdict: Verdict;
  /** What the votes and the words say, whatever a tool's fields do. */
  readonly spoken: Verdict;
}

/** A longer message of a content person may hold what another wrote: "always" in it is not enough. */
const standingCharactersMax = 280;
const charactersMax = 400;
/** Of the votes that wrote a hint. */
const agreeingShareMin = 2 / 3;
const none: Hindsight = { hint: '', stands: false, dropped: [] };

export function hindsightOf(
  { next, answer }: Pick<Material, 'next' | 'answer'>,
  votes: readonly CastVote[],
  { verdict, spoken }: Judged,
  { choice, standing: standingIn }: Hearing,
): Hindsight {
  const written = votes.flatMap((vote) => (vote.valid && vote.hint !== '' ? [vote] : []));
  const agreeing = written.filter((vote) => vote.verdict === verdict);
  const isAgreed = agreeing.length / Math.max(1, written.length) >= agreeingShareMin;
  const said = next.role === 'user' ? written.filter(({ hint }) => isSaidBy(hint, ownWords(next.userText))) : [];
  const dropped = written.flatMap((vote): DropReason[] => {
    if (!said.includes(vote)) return ['not_said'];
    return isAgreed && agreeing.includes(vote) ? [] : ['disputed'];
  });
  if (next.role !== 'user') return { ...reasonOf(next, verdict), dropped };
  const isWish = verdict === -1 && spoken !== 1;
  const isRead = isWish || next.text.trim().length <= standingCharactersMax;
  const standing = isRead ? standingIn(next.userText) : [];
  if (!isWish && standing.length === 0) return { hint: '', stands: false, dropped };
  const own = isWish ? hintFrom(next.userText, standing) : asHint(standing.join(' '));
  const candidates = isAgreed ? agreeing.filter((vote) => said.includes(vote)).map(({ hint }) => hint) : [];
  const chosen = chooseHint(candidates, answer, choice);
  const hint = chosen.hint || own;
  if (breaksTemplate([ownWords(next.text), hint])) {
    return { hint: '', stands: false, dropped: [...dropped, 'template_token'] };
  }
  const others = chosen.others.filter((other) => !breaksTemplate([other]));
  return { hint, others, ...standingWith(hint, standing), dropped };
}

/** What stands of the words that began a conversation: no answer comes before them, so that they are no turn's next state. */
export function wishedFirst(
  { begins, question }: Pick<Material, 'begins' | 'question'>,
  standingIn: StandingSentences,
): string | undefined {
  if (begins !== true || question.length > standingCharactersMax || breaksTemplate([question])) return undefined;
  const said = saidWords(question);
  const found = standingIn(said);
  // Where nothing else is asked, it may be all about one answer: "write them that I am late from now on".
  const isAlone = sentencesOf(said).length === found.length;
  const isMeant = !isAlone || found.some((sentence) => startsLasting(sentence));
  return found.length > 0 && isMeant ? asWish(found) : undefined;
}

/** What else the hint says, a fact for one, is about its turn alone: what stands is kept in the words that say so. */
function standingWith(hint: string, standing: readonly string[]): Pick<Hindsight, 'stands' | 'wished'> {
  if (hint === '' || standing.length === 0) return { stands: false };
  const wished = asWish(standing);
  return wished === hint ? { stands: true } : { stands: true, wished };
}

/** As many of the sentences as a lesson can hold, each whole. */
function asWish(standing: readonly string[]): string {
  return standing.reduce((wish, sentence) => {
    const longer = asHint(`${wish} ${sentence}`);
    return wish === '' || longer.length <= wordingCharsMax ? longer : wish;
  }, '');
}

/** Where all that was said stands, in the words of the wish, so that a teacher is shown it once. */
function hintFrom(said: string, standing: readonly string[]): string {
  const wish = standing.join(' ');
  return asHint(lettersOf(wish) === lettersOf(said) ? wish : said);
}

function lettersOf(text: string): string {
  return text.replaceAll(/[^\p{L}]/gu, '');
}

/** Of a person who refused a call. */
function reasonOf({ reason = '' }: Material['next'], verdict: Verdict): Omit<Hindsight, 'dropped'> {
  const hint = verdict === -1 && !breaksTemplate([reason]) ? asHint(reason) : '';
  return hint === '' ? { hint, stands: false } : { hint, stands: false, told: true };
}

/** Of what a person wrote to say what an answer was worth; only where it was bad, or where the words stand. */
export function hindsightOfFeedback(
  texts: readonly string[],
  isBad: boolean,
  standingIn: StandingSentences,
): Hindsight {
  const said = texts.map((text) => wholeSentences(markedWords(text))).filter((text) => text !== '');
  if (said.length === 0) return none;
  const words = said.join('\n');
  const standing = standingIn(words);
  if (!isBad && standing.length === 0) return none;
  const hint = isBad ? hintFrom(words, standing) : asHint(standing.join(' '));
  if (breaksTemplate([...texts, hint])) return { hint: '', stands: false, dropped: ['template_token'] };
  return { hint, ...standingWith(hint, standing), dropped: [] };
}

/** On one line, whole sentences as far as there is room for them; nothing where it says nothing in letters. */
export function asHint(words: string): string {
  const line = words.replaceAll(/\s+/g, ' ').trim();
  if (!/[\p{L}\p{N}]/u.test(line)) return '';
  if (line.length <= charactersMax) return line;
  const whole = line.slice(0, charactersMax).split(sentenceEnd).slice(0, -1).join('');
  return whole === '' ? wholeWords(line, charactersMax) : whole;
}

function breaksTemplate(texts: readonly string[]): boolean {
  return texts.some((text) => templateTokenIn(text) !== undefined);
}
