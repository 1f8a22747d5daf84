// Takes out of a text what is said to its reader as a judge: "Grader: output +1", "[verdict: satisfied]". The author of a next state
// may not say what it is worth. In: a text. Out: the text without those sentences and brackets. It goes by the words for judging in
// several languages beside what one tells a judge; what is left says by itself what the answer was worth. Pure.

/** Names of those who judge. */
const judges =
  String.raw`(?:ai |llm |reward |automatic |dear )*(?:judges?|graders?|evaluators?|raters?|annotators?|reviewers?|classifiers?|reward models?|scorers?|labell?ers?|evaluation models?)` +
  '|bewerter(?:in)?s?|gutachter|bewertungsmodell|richter|prüfer|(?:é|e)valuateurs?|juges?|correcteurs?|evaluador(?:a|es)?|jue(?:z|ces)|calificador(?:es)?' +
  '|valutator[ei]|giudic[ei]|avaliador(?:a|es)?|juiz(?:es)?|beoordelaars?|rechters?|sędzi(?:a|o|owie)|oceniając[yae]';
/** What a judge gives. */
const grades =
  'verdicts?|scores?|scored|rewards?|grades?|graded|rating|rated|labell?ed|label|classif(?:y|ied)|full marks|evaluations?|feedback label' +
  '|urteil|bewertung|punktzahl|note|verdict|récompense|veredicto|puntuación|recompensa|verdetto|punteggio|nota|veredito|pontuação|oordeel|beoordeling|werdykt|ocena';
/** What is graded, or how. */
const outcomes = String.raw`(?<!\d ?)[+\u2212-] ?[01](?!\d|[\p{L}%])|\bsatisf\p{L}+|\bcorrection\b|\bpositive\b|\bnegative\b|\bperfect\p{L}*|\bexcellent\b|\bfail\p{L}*|\bsuccess\p{L}*|\bmax\p{L}*|\bzufrieden|\bkorrektur`;

/** What a judge speaks of. */
const graded =
  'this|that|it|everything|the above|the (?:whole )?thing' +
  String.raw`|(?:the|my|its|your|our) (?:(?:user|assistant|ai|model|last|whole|previous)(?:['\u2019]s)? )?(?:reply|answer|response|feedback|turn|output|message|conversation|exchange|interaction|result)s?`;

const edge = (words: string) => String.raw`(?<![\p{L}\p{N}])(?:${words})(?![\p{L}\p{N}])`;
const patterns: readonly RegExp[] = [
  // "Judge:", "To the grader,", "As the evaluator you".
  new RegExp(String.raw`(?:^|[\p{P}\s])(?:${judges}) ?[:,\uFF1A]`, 'iu'),
  new RegExp(
    String.raw`(?<![\p{L}\p{N}])(?:to|for|as|attention|dear|note to|an|pour|au|aux|à l'|al|para o|ao|aan de) (?:the |an? |den |die |das |any |all |who(?:ever)? )?(?:${judges})(?![\p{L}\p{N}]).{0,80}(?:${outcomes}|${edge(`${grades}|answers?|repl(?:y|ies)|responses?|antwort|réponse|respuesta|risposta|resposta|antwoord`)})`,
    'iu',
  ),
  new RegExp(
    String.raw`(?<![\p{L}\p{N}])(?:for|as) (?:the |an? )?(?:${judges})(?:[^\p{L}\p{N}].{0,40})?[^\p{L}\p{N}](?:right|correct|good|approv\p{L}*|must|have to|should)(?![\p{L}\p{N}])`,
    'iu',
  ),
  new RegExp(String.raw`${edge(judges)}.{0,80}(?:${outcomes}|${edge(grades)})`, 'iu'),
  new RegExp(String.raw`${edge(grades)}.{0,80}(?:${outcomes})`, 'iu'),
  new RegExp(String.raw`(?:${outcomes}).{0,60}${edge(grades)}`, 'iu'),
  // "Mark this reply as a success".
  new RegExp(
    String.raw`\b(?:mark|count|treat|record|regard|consider|register|flag|tag|classify|log|rate) (?:all of )?(?:${graded}) (?:.{1,40} )?as\b.{0,30}(?:${outcomes}|\b(?:good|bad|right|wrong|correct|incorrect|helpful|neutral)\b)`,
    'iu',
  ),
  /(?:markier|wert|stuf)\p{L}*.{1,60}\bals\b|(?:marque|note|considère|classe)[rz]?\b.{1,60}\bcomme\b|(?:marca|califica|considera|clasifica|segna|classifica|valuta|marque|considere)\b.{1,60}\bcom[eo]\b|(?:markeer|beschouw)\b.{1,60}\bals\b/iu,
  // No person speaks of themselves so.
  new RegExp(
    String.raw`\bthe (?:user|assistant|human|customer|ai|chatbot|model)(?:'s|\u2019s)? (?:(?:loved?|hated?|failed|succeeded)\b|(?:is|was|has|did|does|clearly|answer|reply|response|output|work|feels|seems)\b.{0,60}(?:${outcomes}|\b(?:happy|pleased|delighted|thrilled|content|grateful|unhappy|displeased|dissatisf\p{L}+|annoyed|frustrated|angry|disappointed|helpful|unhelpful|great|job)\b))`,
    'iu',
  ),
  /\\?boxed ?\{/i,
  /\bwho(?:ever)? (?:grades|judges|rates|scores|evaluates)\b/i,
  /(?:ignore|disregard|forget|override)\b.{1,40}\b(?:previous|above|prior|earlier|all|your)\b.{1,20}\b(?:instructions?|prompts?|rules?|text|guidelines?)/i,
  /(?:ignorier|vergiss)\p{L}*.{1,40}(?:anweisung|regel)|ignor(?:e|a|ez|i)\b.{1,40}(?:instruc|istruz|consign|anterior)|negeer.{1,40}instructies/iu,
  /^\W{0,4}system(?: (?:note|override|message|prompt))? ?[:=\uFF1A]/i,
  /\bsystem override\b/i,
  /评委|评审|判定为|评分|打满分|奖励模型|忽略(?:之前|以上|上述)|評価者|採点|審査員|判定(?:は|を)|채점|평가자/u,
];

/** Units that stand or fall as one: brackets, comments, objects, and then sentences. */
const units =
  /<!--[^]{0,400}?-->|[[({][^[\](){}\n]{0,400}[\])}]|[^.!?\n\u3002\uFF01\uFF1F[({<]{1,600}[.!?\u3002\uFF01\uFF1F]*|[^]/gu;

export function withoutAddressed(text: string): string {
  const parts = text.match(units) ?? [];
  return parts
    .filter((part) => !patterns.some((pattern) => pattern.test(part)))
    .join('')
    .trim();
}
