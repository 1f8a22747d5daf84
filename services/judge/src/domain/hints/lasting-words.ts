// The plain words for what lasts, in a few languages. In: a sentence of a person's. Out: whether it is told, or asked, with "from now on",
// "always", "never", "every time" and their like; not where they only report ("it always rains"). Pure.

/** Said of nothing but what is to come. */
const phrases = words(
  // Before "answers", so that "in all answers" is one of them.
  String.raw`(?:in|for|to) (?:all|every|each) (?:of )?(?:your |my |future )*(?:answers?|repl(?:y|ies)|responses?|messages?|questions?)`,
  'from (?:now|here|this point|today) on(?:wards?)?|going forward|for future reference|at all times|never again',
  '(?:all|every one) of your (?:answers|replies|responses)|all your (?:answers|replies|responses)',
  'every (?:single )?(?:answer|reply|response)',
  'ab (?:jetzt|sofort|heute)|von (?:jetzt|nun|heute) an|künftig|zukünftig|nie wieder|in (?:allen|jeder) (?:deiner |deinen )?antwort(?:en)?',
  'désormais|dorénavant|à partir de maintenant|à compter de maintenant|plus jamais|dans toutes tes réponses',
  'de ahora en adelante|de aquí en adelante|a partir de ahora|desde ahora|nunca más|en todas tus respuestas',
  "d'ora in (?:poi|avanti)|da (?:ora|adesso) in poi|mai più|in tutte le risposte",
  'vanaf nu|voortaan|in het vervolg|nooit meer',
  'de agora em diante|daqui em diante|daqui (?:para|pra) a? ?frente|a partir de agora|nunca mais',
  'från och med nu|hädanefter|fra (?:nu|nå) af?|fremover|tästä (?:lähtien|eteenpäin)|héðan í frá',
  'отныне|впредь|с этого момента|с этих пор|відтепер|надалі|од сега|od teraz|odtąd|od teď|odteď|odslej|od sada|ubuduće',
  'bundan (?:sonra|böyle)|şu andan itibaren|mostantól|ezentúl|de acum înainte|pe viitor|από (?:τώρα|εδώ) και (?:πέρα|στο εξής|μπρος)',
  'từ (?:giờ|nay|bây giờ)(?: trở đi)?|mulai sekarang|mulai saat ini|kuanzia sasa|mula ngayon',
  'من الآن فصاعد(?:ا|ًا|اً)|من الآن|بعد الآن|از این به بعد|از حالا به بعد|מעכשיו(?: והלאה)?|מהיום והלאה|اب سے|آئندہ',
  'अब से|आगे से|अबसे|এখন থেকে|এরপর থেকে|இனிமேல்|ఇక నుంచి|ఇకపై|ಇನ್ನು ಮುಂದೆ|ഇനി മുതൽ|આજથી|હવેથી|ਹੁਣ ਤੋਂ',
);
/** A script without spaces has no ends of words either. */
const unspaced =
  /ต่อจากนี้|จากนี้ไป|ตั้งแต่นี้|ทุกครั้ง|ຕໍ່ຈາກນີ້|ຈາກນີ້ໄປ|ຕັ້ງແຕ່ນີ້|ທຸກຄັ້ງ|ចាប់ពីពេលនេះ|ចាប់ពីឥឡូវ|រាល់ពេល|အခုကစ|ယခုမှစ|ဒီကနေစ|အခါတိုင်း|从现在起|从现在开始|从今以后|从今往后|今后|以后(?:都|请|不要|别|也|，)|每次都|再也不要|永远不要|总是用|これからは|今後は|今後も|次からは|毎回|二度と|必ず毎|앞으로는?|이제부터|지금부터|매번|다시는/u;

/** When it is to be. */
const times = words(
  "always|never|(?:every|each) time|whenever|next time|in (?:the )?future|no more|don't ever|do not ever",
  'immer|niemals|nie|stets|jedes mal|in zukunft|nächstes mal',
  "toujours|jamais|(?:à )?chaque fois|à l'avenir|la prochaine fois",
  'siempre|nunca|jamás|cada vez|en el futuro|la próxima vez',
  'sempre|ogni volta|in futuro|la prossima volta',
  'altijd|nooit|(?:elke|iedere) keer|in de toekomst|de volgende keer',
  'toda vez|todas as vezes|no futuro|da próxima vez',
);
/** A habit: a wish where one is told what to do, a report elsewhere. */
const habits = words(
  times,
  "(?:stop|quit|avoid) \\p{L}+ing|(?:don't|dont|do not) .{0,80}\\b(?:again|any ?more|ever)|hör(?:en sie)? auf",
  'arr[êe]te[zr]? de?|deja de|non .{1,60} mai|smett(?:i|ila) di|(?:stop|hou op) met|par[ae] de',
);
/** Words that end in these say something else. */
const otherwise = words(
  'never (?:mind|heard|thought|knew|seen|been|had|understood|would|did|\\p{L}+ed)',
  'always (?:an?|the|nice|good|great|glad|happy|fun|been|had|was|is|\\p{L}+ed)',
  '(?:as|like|than|wie|comme|como|come|zoals) (?:always|never|immer|toujours|siempre|sempre|altijd|nunca)',
  '(?:for|für|pour|para|per|voor) (?:ever|immer|toujours|siempre|sempre|altijd)|immer (?:noch|mehr|wieder|schon)|toujours pas',
  '(?:every|each|next) time (?:i|we|he|she|they|it)|whenever (?:i|we|he|she|they|it)|(?:see you .{0,20}|maybe|until) next time|nunca (?:he|ha|has|hemos|han|estive|fui|vi)',
);
/** Who or what a report is about, at its head or right before the habit. */
const subjects = words(
  "(?:i|you|we|he|she|it|they|there|this|that)(?:'\\p{L}+)?|the|these|those|an?|my|his|her|our|their|who|what|why|how|when|where|which|is|are|was|were|has|have|had|will|would|does|did|people|some|most",
  'ich|wir|er|sie|es|das|die|der|den|ein|eine|man|mein|meine|du|ihr|was|wie|warum|wer|wo|ist|sind|war|hat|habe',
  "je|nous|il|elle|on|ils|elles|tu|vous|le|la|les|un|une|mon|ma|qui|que|pourquoi|comment|est|c'est|ce|j'\\p{L}+|l'\\p{L}+",
  'yo|nosotros|él|ella|ellos|el|los|las|mi|qué|cómo|cuándo|es|está|son',
  'io|noi|lui|lei|loro|lo|gli|è|sono|perché|ho|ha',
  'ik|wij|hij|zij|ze|het|de|een|dat|dit|er|mijn|wat|waarom|hoe|heb|heeft',
  'eu|nós|ele|ela|eles|os|as|um|uma|meu|é|são',
);
/** Whom it tells: "you should always". */
const told =
  /(?:^|\s)(?:you|du|tu|vous|je|jij|você) (?:should|must|need to|have to|are to|can|sollst|solltest|musst|dois|devrais|devez|debes|deberías|devi|dovresti|moet|deve|deves)\b|(?:^|\s)(?:want|need|like|ask|prefer|möchte|will|quiero|voglio|wil|quero|veux|voudrais) (?:you|dass|que|che|dat)(?:\s|$)/i;
const courtesies = words(
  'please|kindly|just|so|and|but|also|then|ok(?:ay)?|well|no(?! more)|yes|great|good|nice|perfect|thanks|thank you|thx|only',
  "bitte|aber|und|also|danke|nein|ja|gut|s'il (?:te|vous) pla[iî]t|merci|mais|et|non|oui|por favor|gracias|pero|y|sí",
  'per favore|grazie|ma|e|sì|alsjeblieft|graag|bedankt|maar|en|nee|obrigad[oa]|mas|não|sim',
);
const asking =
  /^(?:can|could|would|will) you|^(?:kannst|könntest|würdest) du|^(?:peux|pourrais)[- ]tu|^(?:pouvez|pourriez)[- ]vous|^(?:puedes|podrías|puoi|potresti|pode|podes|poderia|podias|kun je|kan je|zou je)\b|\b(?:please|bitte|plaît|por favor|per favore|alsjeblieft)\b/i;

const atStart = (pattern: string) => new RegExp(String.raw`^(?:${pattern})(?![\p{L}\p{N}])`, 'iu');
const anywhere = (pattern: string) => new RegExp(String.raw`(?<![\p{L}\p{N}'])(?:${pattern})(?![\p{L}\p{N}])`, 'iu');
const phrase = anywhere(phrases);
const habit = anywhere(habits);
const besides = [new RegExp(unspaced, 'gu'), new RegExp(anywhere(words(phrases, times, courtesies)), 'giu')];
const other = anywhere(otherwise);
const subjectAtStart = atStart(subjects);
const subjectAtEnd = new RegExp(String.raw`(?:^|\s)(?:${subjects})$`, 'iu');
const courtesy = new RegExp(String.raw`^(?:${courtesies})(?:\s+|$)`, 'iu');

export function hasLastingWords(sentence: string): boolean {
  if (unspaced.test(sentence)) return true;
  if (/[?\uFF1F]$/.test(sentence) && !asking.test(withoutCourtesies(sentence))) return false;
  if (phrase.test(sentence)) return true;
  return clausesOf(sentence).some((clause) => isWish(clause));
}

/** Whether a sentence with such words begins with them: "From now on …", "Please always …". */
export function startsLasting(sentence: string): boolean {
  const head = clausesOf(sentence).find((clause) => clause !== '') ?? '';
  return [unspaced, phrase, habit].some((lasting) => lasting.exec(head)?.index === 0);
}

/** What a sentence says besides when it holds, and that it is polite. */
export function besidesLastingWords(sentence: string): string {
  return besides.reduce((rest, lasting) => rest.replaceAll(lasting, ' '), sentence);
}

function isWish(clause: string): boolean {
  const found = habit.exec(clause);
  if (found === null || other.test(clause)) return false;
  if (told.test(clause) || asking.test(clause)) return true;
  const before = clause.slice(0, found.index).trim();
  // "Always!" alone answers something.
  const isAlone = found[0] === clause && !clause.includes(' ');
  return !isAlone && !subjectAtStart.test(clause) && !subjectAtEnd.test(before);
}

/** Without what is only polite, so that some are empty. */
function clausesOf(sentence: string): string[] {
  return sentence
    .split(/[,;:]\s+|\s[\u2013\u2014-]\s/u)
    .map((clause) => withoutCourtesies(clause.replace(/[.!?\u2026]{1,8}$/u, '').trim()));
}

function withoutCourtesies(clause: string): string {
  let bare = clause;
  for (let before = ''; before !== bare;) {
    before = bare;
    bare = bare.replace(courtesy, '');
  }
  return bare;
}

function words(...alternatives: readonly string[]): string {
  return alternatives.join('|');
}
