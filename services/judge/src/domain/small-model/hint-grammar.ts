// Finds the sentence that says how to answer, and turns it into a standing instruction. In: a person's own words.
// Out: an instruction such as "Answer in one short sentence.", or nothing. It quotes: it never makes up words about
// the task, and never reads what a tool, a file or a page said.
import { saidWords } from '../said-words.js';

const sentencesMax = 40;
const instructionsMax = 2;
/** A longer sentence is a story, not a rule. */
const sentenceCharactersMax = 200;

/** Words with which one asks for a way of answering. */
const verbs =
  'answer|reply|respond|write|keep|use|give|make|say|explain|be|avoid|add|include|start|begin|end|put|stick to|talk|speak|' +
  'drop|leave out|skip|list|format|get to|cut|rewrite|redo|cite|show|limit|summari[sz]e|shorten|simplify|call|spell|translate|mention|remember';
const forbidding = "don't|do not|never|stop|quit|no more|without|avoid|enough with";

/** What an instruction is about, if it is about answers at all and not about the topic. */
const aboutAnswers =
  /\b(?:answers?|reply|replies|respond|responses?|sentences?|words?|short(?:er)?|brief(?:er)?|concise|long(?:er)?|bullet|bullets|lists?|markdown|bold|headings?|plain|text|simple|simpler|simply|formal|casual|polite|friendly|tone|language|english|spanish|french|german|lower ?case|upper ?case|capitals?|emojis?|examples?|steps?|table|paragraphs?|lines?|jargon|details?|code|style|like i(?:'m| am)|lecture|apologi[sz]e|repeat|point|units?|metric|celsius|always|never|every|from now on|next time|in future|in general)\b/i;

export function extractHint(userText: string): string {
  const parts = saidWords(userText)
    .replaceAll('\u2019', "'")
    .split(/(?<=[.!?\u2026])\s|\n/u)
    .map((part) => part.replaceAll(/\s+/g, ' ').trim());
  const sentences = parts.filter((part) => /\p{L}/u.test(part)).slice(0, sentencesMax);
  const found = sentences
    .filter((sentence) => sentence.length <= sentenceCharactersMax)
    .map((sentence) => instructionIn(sentence))
    .filter((instruction) => instruction !== '');
  return [...new Set(found)].slice(0, instructionsMax).join(' ');
}

function instructionIn(sentence: string): string {
  const bare = bareOf(sentence);
  if (!aboutAnswers.test(bare)) return '';
  const made = forms.reduce((found, form) => found || form(bare), '');
  const changesOneText =
    /^make (?:it|this|that)\b/i.test(made) && !/\b(?:short(?:er)?|brief(?:er)?|concise|simpler?|plain)\b/i.test(made);
  if (changesOneText) return '';
  // What was asked about one answer, as it holds for all: "Give one short sentence" → "Answer in one short sentence".
  const standing = made
    .replace(/ (?:would|will|should) (?:do|be (?:enough|fine|plenty|nice|better)|suffice)\b.*$/i, '')
    .replace(
      /^(?:give|write|say it in|tell it in|keep it (?:to|down to)|cut it (?:down )?to|answer) ((?:just |only )?(?:a|an|one|two|three|at most) (?:[a-z]+ )?(?:sentence|line|word|paragraph)s?\b)/i,
      'Answer in $1',
    )
    .replace(/ as an answer$/i, '')
    .replace(/^(?:rewrite|redo|say|write|repeat|answer) (?:it|this|that)(?: again)?,?(?: but)? /i, 'Answer ');
  const trimmed = withoutEnd(standing, ' ,;:\u2013-');
  return trimmed === '' ? '' : `${trimmed.charAt(0).toUpperCase()}${trimmed.slice(1)}.`;
}

/** Without greeting words, pleading and reproach around the instruction itself. */
function bareOf(sentence: string): string {
  const ends = ' .!?\u2026';
  let bare = withoutEnd(sentence, ends);
  for (let before = ''; before !== bare;) {
    before = bare;
    bare = bare
      .replace(/^no[,.;:!]+\s*/i, '')
      .replace(
        /^(?:ugh|hey|ok|okay|well|sorry|again|hmm|argh|also|and|but|so|then|thanks|thank you|too (?:long|wordy|much))[\s,:;.!\u2013-]+/iu,
        '',
      )
      .replace(/^(?:please|just|kindly|simply)[\s,]+/i, '')
      .replace(/[ ,](?:please|next time|thanks|thank you|ok|okay|this time|will you|for me)$/i, '');
    bare = withoutEnd(bare, ' ,');
  }
  return withoutEnd(bare, ends).trim();
}

/** A pattern that looks for the end of a text begins anew at each character that could be in it. */
function withoutEnd(text: string, characters: string): string {
  let end = text.length;
  while (end > 0 && characters.includes(text.charAt(end - 1))) end -= 1;
  return text.slice(0, end);
}

type Form = (bare: string) => string;

const imperative = new RegExp(`^(?:always |only )?(?:${verbs})\\b`, 'i');
const prohibition = new RegExp(`^(?:${forbidding})\\b`, 'i');
/** "Can you speak German?" asks for an ability. */
const request = new RegExp(
  `^(?:can|could|would|will) you (?:please |just |maybe )*(?!speak|talk)(${verbs})\\b(.*)$`,
  'i',
);
const courtesy = /^would you mind being (.+)$/i;
const wish = /^i(?:'d| would)? (?:want|need|like|prefer|love)(?: you)?(?: to (?:get|have|see|read))? (.+)$/i;
const reproach = /^i (?:said|told you|asked(?: you)?(?: for)?)\b(?:[ ,:]*(?:to )?)([^ ,:].*)$/i;
const laterClause = new RegExp(`[,;:\u2013-]\\s*(?:please |just |so )*((?:${verbs}|${forbidding})\\b.*)$`, 'i');
const fragment =
  /^(?:much )?(?:(?:one|a single|two|three|at most|no more than|fewer|less|no|only|shorter|in|plain|without)\b.*)$/i;

const forms: readonly Form[] = [
  (bare) => (prohibition.test(bare) ? forbidden(bare) : ''),
  (bare) => (imperative.test(bare) ? withoutPleading(bare) : ''),
  (bare) => {
    const [, verb = '', rest = ''] = request.exec(bare) ?? [];
    return verb === '' ? '' : withoutPleading(`${verb}${rest}`);
  },
  (bare) => {
    const [, manner = ''] = courtesy.exec(bare) ?? [];
    return manner === '' ? '' : `Be ${manner}`;
  },
  (bare) => {
    const [, wanted = ''] = reproach.exec(bare) ?? [];
    return wanted === '' ? '' : fragmentRule(wanted) || ruleFromWords(wanted);
  },
  (bare) => {
    const [, wanted = ''] = wish.exec(bare) ?? [];
    return wanted === '' || /^to\b/i.test(wanted) ? '' : `Give ${withoutPleading(wanted)}`;
  },
  (bare) => {
    const [, clause = ''] = laterClause.exec(bare) ?? [];
    return clause === '' ? '' : ruleFromWords(clause) || withoutPleading(clause);
  },
  fragmentRule,
];

function ruleFromWords(words: string): string {
  if (prohibition.test(words)) return forbidden(words);
  return imperative.test(words) ? withoutPleading(words) : '';
}

/** "One sentence only" → "Answer in one sentence only"; "No lists" → "Use no lists". */
function fragmentRule(bare: string): string {
  const words = withoutPleading(bare);
  if (!fragment.test(words) || words.split(' ').length > 12) return '';
  if (/^(?:no|fewer|less|shorter)\b/i.test(words)) return `Use ${lowerFirst(words)}`;
  if (/^(?:in|without)\b/i.test(words)) return `Answer ${lowerFirst(words)}`;
  if (/^(?:much|only) /i.test(words)) return `Give ${lowerFirst(words)}`;
  if (/^plain\b/i.test(words)) return `Use ${lowerFirst(words)}`;
  return `Answer in ${lowerFirst(words)}`;
}

function forbidden(bare: string): string {
  const rest = /^(?:stop|quit) (.+)$/i.exec(bare)?.[1];
  if (rest !== undefined) return `Do not go on ${lowerFirst(rest)}`;
  const noun = /^(?:no more|enough with(?: the)?) (.+)$/i.exec(bare)?.[1];
  return noun === undefined ? withoutPleading(bare) : `Use no ${lowerFirst(noun)}`;
}

/** "please" pleads anywhere, "just" only where nothing stands against it. */
function withoutPleading(words: string): string {
  return words
    .replaceAll(/\b(?:please|kindly)\b[\s,]*/gi, '')
    .replace(/^just\s+/i, '')
    .replace(/^(give|tell|show|write|send) me(?: just)?\b/i, '$1')
    .replace(/\b(?:next time|this time)\b/gi, '')
    .replaceAll(/\s+/g, ' ')
    .trim();
}

function lowerFirst(words: string): string {
  return /^[A-Z][a-z ]/.test(words) ? words.charAt(0).toLowerCase() + words.slice(1) : words;
}
