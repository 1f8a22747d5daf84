// Evidence in a person's own words: phrases that mean a correction, thanks or a pause whatever the topic is. In: the
// user's message. Out: one vote, or nothing when no phrase is clear. It is conservative: in doubt it is silent.
import type { EvidenceVote } from '../verdict.js';
import type { Verdict } from '../verdict-value.js';
import { ownWords } from './own-words.js';

interface Rule {
  readonly name: string;
  readonly pattern: RegExp;
}

/** Longer messages say more than one thing: only their beginning is read. */
const charactersRead = 400;

const corrections: readonly Rule[] = [
  {
    name: 'no',
    pattern:
      /^(?:no|nope|wrong|incorrect|false)(?:[,.!:]| (?:no|that|this|it|i|you)\b)(?! (?:problem|worries|need|idea|rush|hurry))/,
  },
  {
    name: 'not_right',
    pattern:
      /\b(?:that|this|it|the (?:answer|year|number|code))(?:'s| is| was)?(?: still)? (?:not (?:right|correct|true|what i|how i|helpful)|wrong|incorrect|false|useless)\b/,
  },
  {
    name: 'not_right',
    pattern:
      /\b(?:isn't|wasn't) (?:right|correct|true|what i)\b|\b(?:you're|you are|you got me|you have it) (?:wrong|mistaken)\b|^not (?:helpful|right|correct|true|quite right)\b/,
  },
  { name: 'i_asked', pattern: /(?<!what )\bi (?:asked|meant|said|told you|wanted|was asking|was talking about)\b/ },
  {
    name: 'you_missed',
    pattern:
      /\byou (?:forgot|missed|left out|ignored|misunderstood|misread|skipped|(?:didn't|did not|don't|haven't) (?:answer|read|mention|say|include|listen|understand))\b|^(?:it's|it is) missing\b|\b(?:doesn't|didn't|does not|did not) answer\b/,
  },
  {
    name: 'does_not_work',
    pattern:
      /\b(?:doesn't|didn't|does not|did not|won't|isn't|not) (?:work|working|help|run|compile|start)\b|\bi (?:still )?(?:get|got|see) (?:an|the same|another) error\b|\bmade (?:it|things) worse\b|\bstill (?:drips|fails|broken|there|wrong|the same)\b/,
  },
  { name: 'again', pattern: /\b(?:redo|rewrite|rephrase|try again|do it again|start over|once again)\b|^again,/ },
  {
    name: 'too_much',
    pattern:
      /\b(?:too|way too|far too) (?:long|wordy|verbose|much|complicated|formal|technical|vague|detailed)\b|\bso (?:long|wordy|complicated|formal)\b/,
  },
  {
    name: 'shorter',
    pattern:
      /\b(?:shorter|more concise|be (?:brief|concise)|keep (?:it|your answers?|this) (?:short|brief|to)|(?:less|fewer) (?:detail|text|words|formal)|(?:one|a single|in one)(?: short)? sentence|tl;?dr|get to the point)\b/,
  },
  {
    name: 'stop',
    pattern:
      /\b(?:stop|quit|don't|do not|no more) (?:using|use|writing|write|saying|say|repeating|repeat|lecturing|lecture|adding|add|doing|do)\b/,
  },
  {
    name: 'style',
    pattern:
      /\b(?:plain text|without (?:the )?(?:lists?|bullets?|markdown|bold)|(?:simpler|plainer|easier) (?:words|way|terms)|explain it (?:simply|like)|simplify|more (?:polite|casual|simple|formal|detailed|specific))\b/,
  },
  {
    name: 'change',
    pattern:
      /^(?:please )?(?:(?:can|could|would) you (?:please )?|please )?(?:change|fix|correct|remove|shorten|simplify|make (?:it|this|that))\b/,
  },
  { name: 'not_clear', pattern: /\bi (?:don't|do not|can't) (?:understand|get|follow)\b|\bmakes? no sense\b/ },
  { name: 'scolds', pattern: /\b(?:useless|terrible|awful|stupid answer|waffle|waste of time|are you even)\b/ },
  {
    name: 'only',
    pattern:
      /^(?:please )?(?:just|only) (?:the|one|an?)\b(?! (?:sec|second|moment|minute))|^no (?!problem|worries|need|idea|rush|hurry)\w+(?: and no \w+)+|\bi only (?:wanted|need|asked)\b/,
  },
  { name: 'dislikes', pattern: /\bi (?:don't|do not|didn't|did not) (?:like|want|need|ask for)\b/ },
  {
    name: 'change',
    pattern:
      /^please (?:also )?(?:add|remove|put|leave|use|include|drop|avoid|write it|redo|shorten|keep)\b|^(?:can|could|would) you (?:please |also )*(?:add|use|put|leave|start|end|keep|drop|include|shorten|avoid|make)\b/,
  },
  {
    name: 'not_right',
    pattern: /\b(?:is|are|was|were) (?:wrong|incorrect|missing)\b|\bthat's way off\b|\byou are mistaken\b/,
  },
  { name: 'doubts', pattern: /\bare you sure\b|\bi (?:read|heard) (?:the opposite|otherwise)\b/ },
  {
    name: 'does_not_work',
    pattern: /\bnothing (?:happened|happens|changed|works)\b|\b(?:is|are|there's) still (?:an?|the|no|not|there)\b/,
  },
  {
    name: 'hoped',
    pattern:
      /\bi (?:had |was )?(?:hoped|hoping|expected|expecting) (?:for|that|to)\b|\bmore than (?:what )?i (?:can|have|could)\b/,
  },
  {
    name: 'scolds',
    pattern: /\bnobody (?:reads|talks|writes|says)\b|\breads like an?\b|\byou keep \w+ing\b|\bi already knew\b/,
  },
  { name: 'again', pattern: /\basking (?:you )?again\b|\bmy question was\b|\b(?:my|the) (?:message|question) again\b/ },
  { name: 'contrast', pattern: /, not (?:for|about|in|from|the|my|an?)?\s?\S+|^not (?:an?|the|like)\b/ },
];

const approvals: readonly Rule[] = [
  { name: 'thanks', pattern: /\b(?:thanks|thank you|thx|many thanks|much appreciated)\b/ },
  {
    name: 'praise',
    pattern:
      /\b(?:perfect|awesome|excellent|exactly what i (?:needed|wanted)|great answer|good (?:idea|answer|point|to know)|well done|love it|that's (?:great|beautiful|helpful)|very (?:useful|helpful))\b/,
  },
  {
    name: 'worked',
    pattern:
      /\b(?:it|that|this) (?:worked|works|helped|fixed it)\b|\bworks (?:now|great|well|like)\b|^fixed it\b|\bruns without errors\b/,
  },
  {
    name: 'agrees',
    pattern:
      /^(?:makes sense|sounds good|got it|i agree|good plan)\b|\bi'll (?:go with|take|try|do) (?:that|it|the)\b|\bi will (?:buy|take|try|use|do) (?:it|that|the)\b/,
  },
  {
    name: 'goes_on',
    pattern:
      /^(?:and )?(?:what|how) about\b|\b(?:tell me|hear) more\b|^(?:good|great|ok|okay|yes|perfect)[,.!] (?:and )?(?:now|next|what|how|which)\b/,
  },
  {
    name: 'delighted',
    pattern: /^(?:oh )?(?:wow|cool|nice|neat|interesting|great|huh, (?:fascinating|interesting))\b/,
  },
  {
    name: 'praise',
    pattern:
      /^(?:that(?:'s| is|'s so) |a |very |really )?(?:good|great|clear|clever|nice|lovely|beautiful|excellent)\b|\bi (?:really )?like (?:that|this|it|the)\b|\b(?:liked|loved|enjoyed) it\b|\bexactly (?:how|what|as) i\b|\bit was (?:lovely|great|delicious)\b/,
  },
  { name: 'understands', pattern: /\bi (?:understand|get|see) it now\b|\bdid not know that\b|^(?:oh|wow|ah|ha)\b/ },
  {
    name: 'worked',
    pattern:
      /\bnow (?:it|that) (?:runs|works)\b|\b(?:is|are) (?:gone|fixed|solved|finished)\b|\bmuch (?:faster|better)\b/,
  },
  {
    name: 'takes',
    pattern:
      /^(?:okay, |ok, |great, )?(?:let's|let us) (?:do|take|go)\b|, let's (?:do|take)\b|\bi(?:'ll| will) (?:learn|buy|take|use|do|make|try)\b|^i take the\b/,
  },
  {
    name: 'goes_on',
    pattern:
      /^now (?:please )?(?:translate|write|do|make|show|plan|explain)\b|^(?:please )?(?:continue|go on|write the (?:next|same))\b|^and (?:after that|then)\b/,
  },
];

const pauses: readonly Rule[] = [
  {
    name: 'wait',
    pattern:
      /^(?:sorry, )?(?:hold on|brb|one (?:sec|second|moment|minute)|wait\b|just a (?:sec|second|moment|minute)|give me a (?:sec|second|moment|minute))/,
  },
  {
    name: 'thinks',
    pattern:
      /\b(?:let me (?:think|see)|need to (?:think|sleep on)|not sure|i don't know|let you know|get back to you|i have to ask)\b/,
  },
  {
    name: 'elsewhere',
    pattern: /^(?:unrelated|off topic|different topic|something else|by the way)\b|\bby the way\.?$/,
  },
  { name: 'noise', pattern: /^[^a-z]{0,6}$|^(?:k|hm+|uh+|test|hello|asdf\w*|qwert\w*)[.!?]*$/ },
  { name: 'wait', pattern: /\b(?:talk later|have to go|let me get|let me find|i am eating|stay there)\b/ },
  {
    name: 'thinks',
    pattern:
      /\b(?:we'll see|we will see|mixed feelings|still have to try|i'll ask|neither good nor bad)\b|\bi(?:'ll| will) (?:look at|check|test|tell)\b.*\b(?:later|tomorrow|next)\b/,
  },
  {
    name: 'about_you',
    pattern:
      /^(?:are you (?:an? )?(?:human|robot|real|bot)|what(?:'s| is) your|who made you|where do you|do you (?:know|remember)|can you speak|what can you do)\b/,
  },
  { name: 'elsewhere', pattern: /\babout something else\b|^(?:tell|sing) me an? (?:joke|riddle|song)\b/ },
  { name: 'noise', pattern: /^(?:(?:hello ?)+|abc|ups|lol\b.*)[.!?]*$/ },
];

export function wordingEvidence(userText: string): EvidenceVote | undefined {
  const words = ownWords(userText).slice(0, charactersRead).toLowerCase().replaceAll('\u2019', "'").trim();
  const correction = ruleIn(corrections, words);
  if (correction !== undefined) return vote(-1, correction);
  const pause = ruleIn(pauses, words);
  if (pause !== undefined) return vote(0, pause);
  const approval = ruleIn(approvals, words);
  return approval === undefined || / but /.test(words) ? undefined : vote(1, approval);
}

function ruleIn(rules: readonly Rule[], words: string): Rule | undefined {
  return rules.find(({ pattern }) => pattern.test(words));
}

function vote(verdict: Verdict, { name }: Rule): EvidenceVote {
  return { name: 'wording', verdict, detail: name };
}
