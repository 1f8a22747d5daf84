// General words of people who say how they want to be answered, in the languages most written: words of one row mean one thing. A `*` stands
// for any ending. What no row knows is a feature by itself, so a missing word makes two wishes different, never the same.

/** `axis value: words`. Values of one axis exclude each other; "+" and "-" are each other's negation. */
const axisRows = `
length -: short* brief* breve* brevi concis* terse* succinct* compact tldr curt kurz kurze* kürz* knapp* court courte* bref* brève* succinct* corto* corta* concis* sintetic* sucint* curto* curta* kort kort? korter* beknopt*
length +: long longer longest lengthy verbos* wordy winded rambl* detail* elaborat* thorough* exhaustiv* comprehensiv* depth lang lang? länger* ausführlich* lange longue* long? détaill* detall* largo* larga* extens* lungo lungh* lunga* dettagli* longo* longa* detalhad* uitgebreid* langer*
register +: formal formally formel formell* förmlich* sieze siezen polite* stiff formeel formele
register -: loosen* informal* casual* colloquial* slang relaxed laid locker* duze duzen informel* familier* coloquial* informeel informele
simple +: simple simpl* easy easier layman* laymen beginner* child children kid kids eli5 einfach* leicht leichte* verständlich* facile* fácil* sencill* semplic* fácil* eenvoudig*
simple -: technical* jargon expert* advanced complicated complex* fachbegriff* fachsprache fachlich* kompliziert* technique* jerga técnic* tecnic* gergo complicad* ingewikkeld*
units metric: metric metrisch* métri* metric* kilometre* kilometer* kilogram* centimetre* centimeter* metres meters km kg cm
units imperial: imperial* impérial* feet foot inches pounds miles mile yards ounces
temperature celsius: celsius centigrade
temperature fahrenheit: fahrenheit
currency euro: euro euros eur €
currency dollar: dollar dollars usd $
currency pound: sterling gbp £
currency yen: yen jpy ¥
place first: start starts starting begin begins beginning first top anfang beginn* beginne zuerst début commence* inizio comienz* empiez* inicio principio comece begin
place last: end ends finish* close closing conclude last bottom finally ende schluss abschluss fin termine* final finale* fine termina* acaba* einde
case lower: lowercase lower kleinschreib* kleinbuchstaben minuscul* minúscul*
case upper: uppercase upper caps capital capitals capitalis* capitaliz* grossbuchstaben großbuchstaben majuscul* mayúscul* maiuscol* maiúscul*
spelling british: british britisch* britanni* británic*
spelling american: american* amerikanisch* américain* american*
clock 24: 24h 24-hour 24-stunden*
clock 12: 12h 12-hour am pm am/pm
tense past: past-tense präteritum* imparfait
tense present: present-tense präsens
tense future: future-tense
voice active: active-voice aktiv* actif activa* attiv*
voice passive: passive passiv* pasiv* passiv*
person first: first-person
person second: second-person
person third: third-person
indent tab: tab tabs
indent space: space spaces
style functional: functional* funktional*
style object: object-oriented objektorientiert* oop
layout bullets: bullet* stichpunkt* stichwort* aufzählung* puce* viñeta* puntat*
layout prose: prose prosa fließtext* fliesstext*
tone warm: friendl* warm* nicer nice nett* gentl* freundlich* herzlich* gentil* amical* amable* gentile* amichevol*
tone cold: harsh* cold colder
mood funny: fun funny funnier humor* humour* joke* joking laugh* witty pun puns lustig* witz* drôle* blague* humo* chiste* divertid* scherz* battut* piada*
mood serious: serious* ernst* sérieu* serio* seriös*
code python: python
code typescript: typescript ts
code javascript: javascript js
code rust: rust
code go: golang
code java: java
code ruby: ruby
code csharp: c# csharp
code cpp: c++ cpp
`;

/** `concept: words`. */
const conceptRows = `
emoji: emoji* emoticon* smiley* smilies émoji* émoticône* emotic* faccin*
table: table tables tabelle* tabell* tableau* tabla* tabelas tabela
heading: heading* header* headline* überschrift* titre* encabezad* titol* títul*
bold: bold* fett fettschrift gras negrita* grassetto negrito
italic: italic* kursiv* italique* cursiva*
example: example* examples instance beispiel* exempl* ejempl* esemp* voorbeeld*
source: source* reference* citation* cite cites citing cited quelle* quellen* beleg* référence* fuente* bibliograph* bron bronnen
link: link links url urls hyperlink* lien* enlace* collegament*
code: code codes coding snippet* quellcode código codice
apology: apolog* sorry entschuld* excus* désolé* disculp* perdón* perdon* scus* desculp*
greeting: greet* hello hi begrüß* grüß* salut* bonjour saludo* saluda* hola saluti saluta*
question: question* query ask asks asking frage* fragst pregunta* domand* pergunt* vraag vragen
summary: summar* recap* zusammenfass* résum* resum* riassu* samenvat*
intro: intro introduct* preamble* preface* einleitung* vorrede introducc* introduz* inleiding*
opinion: opinion* view views meinung* avis opinión* opinion* parere
disclaimer: disclaimer* warning* caveat* warnhinweis* haftung* avertiss* advertencia* avvertenz*
praise: compliment* flatter* prais* lob lobe* flatt* halag* elogi* complimen*
sentence: sentence* satz sätze* sätzen phrase phrases frase frases frasi zin zinnen oración oraciones
paragraph: paragraph* absatz absätze* paragraphe* párrafo* paragraf* parágrafo* alinea*
word: word words wort wörter* worte* mot mots palabra* parola parole palavra* woord woorden
line: line lines zeile* ligne* línea* riga righe linha*
decimal: decimal* nachkomma* décimal* decim*
stepwise: stepwise schrittweise
step: step steps schritt* étape* paso pasos passagg* passo stap stappen
reason: reasoning reason reasons reasoned begründ* raisonn* razon*
option: option* alternativ* choice* suggestion* recommendation* optionen vorschlag* vorschläge*
explain: explain* explanation* erklär* expli* spieg* uitleg*
comment: comment* kommentar* kommentier* commentair* coment*
number: number* numbered numbering nummerier* numérot* numer*
formula: formula* equation* math maths formeln équation* ecuacion*
date: date dates datum daten fecha*
price: price* prices preis* prix precio* prezz*
diagram: diagram* chart* diagramm* schéma* diagrama*
exclaim: exclamation*
markdown: markdown
spoiler: spoil*
rhyme: rhym* reim* rime* rima*
test: test tests testing
name: name names namen nenn* nom llama* llám* appelle* chiam* chama*
ai: ai artificial llm chatbot ki ia
certainty: certainty confidence
library: librar* package* dependenc* bibliothek*
memory: remember*
only: only exclusively solely nur seulement uniquement solamente únicamente soltanto somente alleen
repeat: repeat* restat* wiederhol* répèt* repit* ripet* repet*
tone: tone ton tono toon
pros: pros advantages upsides vorteile avantages ventajas vantaggi
cons: cons disadvantages downsides nachteile inconvénients desventajas svantaggi
`;

/** What goes without saying beside another: `feature: words`. */
const impliedRows = `
~units: unit* measure* measuring distance* einheit* unité* unidad* unità weight* length*
~temperature: degree* temperature* grad
~currency: =price price* amount*
~spelling: ~language spell*
~case: letter* buchstab*
~voice: voice
~code: =code
~style: =code
~register: =tone language wording
~tone: =tone
~simple: =word language wording
gender-neutral: language wording
=heading: section*
~indent: indent* =code
=test: unit =code
~clock: time times clock format*
=bold: =word letter*
=markdown: plain format*
=date: format*
~layout: format*
=table: format*
=question: follow-up followup
=certainty: level
=library: external third-party
=greeting: ~place
=intro: ~place
#=decimal: round* place places stelle*
`;

/** They turn what is said behind them in the same clause. */
const negationWords =
  "no not never none nothing without don't dont doesn't isn't aren't can't cannot couldn't won't needn't shouldn't stop stopping avoid* quit skip skipping " +
  'drop omit* cut lose spare remov* delete exclud* eliminat* refrain ban hate hating dislik* tired enough forget* fail* unless too few little ' +
  'annoy* unnecessary needless useless unwanted neither nor ' +
  'kein* nicht nichts nie niemals ohne zu zuviel wenig hör vermeid* lass lasse weglass* spar verzicht* ' +
  'pas jamais sans aucun* trop arrête* évite* nunca sin ningún ninguna* demasiad* deja evita* jamás non mai senza troppo nessun* smett* ' +
  'não sem nenhum* pare demais nooit geen niet zonder teveel stoppen nada';

/** Less of it, but not none. */
const fewerWords = 'less fewer reduce* weniger moins menos meno minder';

/** That something is asked for, of whom and how politely, but not what. */
const emptyWords =
  "a an the this that that's it's these those it its i me my mine we us you your yours they them is are was were be been being am as at by for from in into " +
  'of on or and to with when where which what while if then so just please pls kindly thanks thank thx ok okay hey want wanted wants ' +
  "need needed needs like likes would could should can will shall must do does did doing have has had having i'd i'm i'll i've you're let let's say says said tell told telling asked saying see several understand understands trying tries remind reminding prefers suggest suggests recommend offer draw hear come stay directly full fully proper properly " +
  'always ever every each time times now next again future onwards onward use uses used using usage give gives given giving make makes made making ' +
  'keep keeps kept keeping put puts write writes written writing wrote get gets got answer answers answered answering reply replies replying respond ' +
  'responds response responses responding rather instead most least more much many very really quite bit way there here all any some but also ' +
  'know prefer preferably preference try go goes going out up than such both same thing things stuff style styled form ones whenever everything anything ' +
  'include includes including add adds adding provide provides show shows showing include contain contains mention mentioning feel free love enjoy message messages text output outputs ' +
  'back well maybe mind speak speaking talk talking chat conversation rule general generally entire whole total overall maximum minimum restrict stick throughout permanently consistently forever anymore ' +
  'actually etc e.g i.e per how about he she his her user person people someone else yes yeah nope nah well then got have been being seems look looks looking sound sounds sounding feels feeling ' +
  'und oder aber der die das den dem des bitte immer antworte antworten antwort schreib schreibe schreiben ab jetzt auf mit von für mir mich ich du deine deinen deiner dein dir ' +
  'gib gebe benutze benutzen verwende verwenden nutze nutzen mach mache machen sei sind ist wird werden im in am an es sie ihr gern gerne künftig zukünftig jedes jede jeder mal stets mehr sehr alle alles dass wenn man soll sollst kannst könntest möchte will hätte habe bleib text texte texten dich sag sagen sprich rede auch noch schon ganz so etwas zum zur beim als ' +
  "toujours réponds réponse réponses répondre en le la les l des de du d moi je tu ta tes ton te et ou avec pour stp svp s'il plaît chaque fois donne donner utilise utiliser écris écrire sois être fais faire mets mettre ne n à au aux dans sur plus très veux voudrais j'aimerais peux désormais dorénavant avenir ces ce cette mes mon ma ses son qu que qui y même parle est sont c'est d'un d'une " +
  'siempre responde respuesta respuestas responder por favor el los las lo del y o con para mi mis tu tus me te se da dar dame usa usar uses use utiliza escribe escribir sé ser haz hacer pon poner a al en más muy cada vez quiero puedes podrías ahora adelante que como es son habla ' +
  'sempre rispondi risposta risposte rispondere per favore il lo gli i di da con dammi usa usare scrivi scrivere sii essere più ogni volta vorrei puoi ora poi che è parla e nei nelle nel nella ' +
  'resposta respostas responda dê usar escreva seja mais cada quero pode agora diante os as fale altijd antwoord antwoorden alsjeblieft graag gebruik schrijf geef wees meer elke keer voortaan het de op van voor met';

/** Words by what they say; several are one token after these. */
export const phrases: readonly (readonly [RegExp, string])[] = [
  [/(^|[.!?;,:] *)((?:always|please|then|and) )?(?:list|name) (?=\p{L})/gu, '$1$2'],
  [/\b(\S+ \S+) or more\b/g, ' #min $1 '],
  [/\b(\S+ \S+) or (?:less|fewer)\b/g, ' #max $1 '],
  [/\b(?:no|not) (?:more|longer|greater) than\b|\bat (?:the )?most\b|\bup to\b|\bno longer than\b/g, ' #max '],
  [
    /\b(?:less|fewer|shorter) than\b|\b(?:under|below|within|maximum of|max\.?|maximum|höchstens|maximal|au plus|au maximum|máximo|massimo|limit(?:ed)?|como mucho|al massimo|hooguit)\b/g,
    ' #max ',
  ],
  [
    /\b(?:no|not) (?:less|fewer|shorter) than\b|\bat (?:the )?least\b|\b(?:more|longer|greater) than\b|\b(?:over|above|minimum of|minimum|mindestens|au moins|al menos|almeno|mínimo|pelo menos|minstens)\b/g,
    ' #min ',
  ],
  [
    /\bno more\b|\bnot any ?more\b|\bget rid of\b|\b(?:leave|leaving|keep|left) out\b|\bdo away with\b|\blay off\b|\bnicht mehr\b|\bne plus\b/g,
    ' without ',
  ],
  [/\bleave (\S+(?: \S+)?) out\b|\blass (\S+(?: \S+)?) weg\b/g, ' without $1$2 '],
  [/\b(?:write|say|talk) (?:so|that|this) much\b/g, ' long '],
  [/\b(?:write|say|talk) too much\b|\btoo much (?:text|to read)\b/g, ' too long '],
  [/\b(?:write|writing|talk|talking|speak) about\b/g, ' topic '],
  [/\b(?:i|we) (?:asked|ask|am asking|'m asking)\b|\bremember (?=to|that)/g, ' '],
  [/\bfasse dich\b|\bper favore\b|\bpor favor\b/g, ' '],
  [/\bper du\b|\bdu zu mir\b/g, ' duze '],
  [/\bper sie\b/g, ' sieze '],
  [
    /\bstep by step\b|\bshow (?:me )?(?:your|the|all|every) (?:work|working|steps?(?: of your reasoning)?|reasoning)\b|\bschritt für schritt\b|\bpaso a paso\b|\bétape par étape\b/g,
    ' stepwise ',
  ],
  [/-(moi|nous|toi|le|la|les)\b/g, ' $1'],
  [/\b([ldjnmts]|qu)'(?=\p{L}{3})/gu, ' '],
  [/\b(?:no|not) only\b|\bnothing but\b|\bno problem\b|\bno matter\b/g, ' '],
  [
    /\b(?:can't|cannot|can not) (?:stand|bear)\b|\b(?:sick|tired|fed up) (?:of|with)\b|\b(?:no need|don't need|needn't|don't have|no reason)(?: to| for)?\b|\b(?:don't|do not) (?:want|like|wish|care)\b/g,
    ' without ',
  ],
  [/\btl;?dr\b/g, ' short '],
  [
    /\b(?:plain|simple|simpler|easy|easier|everyday|clear|basic) (?:english|words?|terms?|language|speech|wording|vocabulary)\b|\blike i'?m (?:five|5)\b/g,
    ' simple ',
  ],
  [
    /\b(?:technical|complicated|big|difficult|fancy|specialist|expert) (?:words?|terms?|language|vocabulary|wording|speech)\b/g,
    ' jargon ',
  ],
  [/\bdumb (?:it|things|this) down\b/g, ' simple '],
  [/\bhow (?:sure|certain|confident)\b/g, ' certainty '],
  [/\bactive voice\b/g, ' active-voice '],
  [/\blower[ -]case\b|\bsmall letters?\b/g, ' lowercase '],
  [/\bupper[ -]case\b|\ball[ -]caps\b|\bcapital letters?\b/g, ' uppercase '],
  [/\b(?:full ?stops?|periods?) at\b/g, ' periods at '],
  [/\b(first|second|third)[ -]person\b/g, ' $1-person '],
  [/\b(past|present|future)(?: simple)? tense\b/g, ' $1-tense '],
  [/\b(24|12)(?:h\b|[ -]hours? (?=clock|times?\b|format)|-hour)/g, ' $1h '],
  [/\bobject[ -]oriented\b/g, ' object-oriented '],
  [/\bwall of text\b|\bwalls of text\b/g, ' long '],
  [
    /\b(?:come|get|getting|cut|straight|right|directly) (?:straight |right |directly )?to the point\b/g,
    ' without intro ',
  ],
  [/\bto the point\b/g, ' short '],
  [/\b(?:call|address) me(?: as)?\b|\bmy name is\b/g, ' name '],
  [/\bwhat you think\b/g, ' opinion '],
  [/\bkeep (\S+ )?opinions? to yourself\b/g, ' without opinion '],
  [/\blike (?:to )?a (?:friend|buddy|mate)\b/g, ' casual '],
  [/\bgender[ -]neutral(?:ly)?\b/g, ' gender-neutral '],
  [/\b(?:full|complete|whole) sentences\b/g, ' prose '],
  [/\bbullet[ -](?:points?|lists?)\b|\bbullet(?:ed)? lists?\b/g, ' bullets '],
  [/\bexclamation (?:marks?|points?)\b/g, ' exclamation '],
  [
    /\bfrom (?:now|here|today) on(?:wards?)?\b|\bin (?:the )?future\b|\ball the time\b|\bab (?:jetzt|sofort)\b|\bà l'avenir\b|\bde ahora en adelante\b|\bd'ora in poi\b/g,
    ' ',
  ],
];

export interface Meaning {
  readonly axis: string;
  readonly value: string;
}

interface WordList {
  has(token: string): boolean;
}

const meanings = new Map<string, Meaning>();
for (const row of rowsOf(axisRows)) {
  const [axis = '', value = ''] = row.name.split(' ');
  for (const word of row.words) if (!meanings.has(word)) meanings.set(word, { axis: `~${axis}`, value });
}
for (const row of rowsOf(conceptRows))
  for (const word of row.words) if (!meanings.has(word)) meanings.set(word, { axis: `=${row.name}`, value: '+' });

const implied = rowsOf(impliedRows).map(({ name, words }) => ({ name, words: listOf(words.join(' ')) }));

export const negations = listOf(negationWords);
export const fewer = listOf(fewerWords);
export const empty = listOf(emptyWords);

/** What a word says, where a row knows it. */
export function meaningOf(token: string): Meaning | undefined {
  return found(token, (form) => meanings.get(form));
}

/** Whether `key` says nothing of its own where `beside` is spoken of. */
export function goesWithoutSaying(key: string, beside: string): boolean {
  return implied.some(({ name, words }) => name === beside && words.has(key));
}

function rowsOf(rows: string): { name: string; words: string[] }[] {
  return rows
    .trim()
    .split('\n')
    .map((row) => row.split(': '))
    .map(([name = '', words = '']) => ({ name: name.trim(), words: words.trim().split(/\s+/) }));
}

function listOf(list: string): WordList {
  const words = new Set(list.split(/\s+/));
  return { has: (token) => found(token, (form) => (words.has(form) ? true : undefined)) ?? false };
}

const stemCharsMin = 2;

/** The word itself, with one letter more (`?`), or any ending (`*`), the longest stem first. */
function found<T>(token: string, look: (form: string) => T | undefined): T | undefined {
  const whole = look(token) ?? look(`${token.slice(0, -1)}?`);
  if (whole !== undefined) return whole;
  for (let length = token.length; length >= stemCharsMin; length -= 1) {
    const stem = look(`${token.slice(0, length)}*`);
    if (stem !== undefined) return stem;
  }
  return undefined;
}
