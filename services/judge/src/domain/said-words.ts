// What of a message a person said to us. In: what a client sent in the role of a user. Out: the person's words, or nothing.
// Agents put observations there, and people paste mails, pages and logs: their authors give no instructions. It
// goes by form alone (markup, labels, rules, indents, fields, addresses), never by what a text is about, and where the form
// leaves a doubt, the text is foreign: an instruction that is missed can be said again.
import { hasLastingWords } from './hints/lasting-words.js';
import { itemOfList } from './list-items.js';
import { cutBetween, markedWords, wholeSentences } from './own-words.js';

/** More than this is an essay, or a paste without any mark. */
const wordsCharactersMax = 600;

const tag = /<\/?[a-z][^<>\n]{0,200}>/gi;
/** Rules between parts, as under the head of a mail or a page. */
const rule = /^[-=*_#~+]{3,}/;
/** "Observation:", "From:", "Content-Type:", "user:". */
const label = /^([\p{L}\p{N}_-]{1,40}(?: [\p{L}\p{N}_-]{1,40}){0,2}):(?:\s|$)/u;
/** With these a person begins a sentence: "I said: in one sentence". */
const spoken = new RegExp(
  String.raw`^(?:${[
    'i|we|you|it|that|this|no|nope|yes|ok|okay|well|hey|hmm|ugh|argh|sorry|again|also|and|but|so|then|thanks|please|just',
    'wrong|incorrect|correction|remember|better|almost|close|always|never|next time|from now on|going forward|in future|one more thing',
    'too (?:long|short|much|formal|vague|simple|complicated|technical|wordy)|not (?:good|right|quite|so|bad|enough|like this)',
    'ich|wir|nein|ja|bitte|danke|aber|und|also|noch|falsch|nicht|zu|besser|immer|nie|niemals|künftig|ab jetzt|ab sofort|von jetzt an',
    'je|nous|non|oui|merci|encore|mais|faux|trop|pas|mieux|toujours|jamais|désormais|dorénavant',
    'yo|sí|gracias|pero|por favor|mal|incorrecto|demasiado|mejor|siempre|nunca|de ahora en adelante|recuerda',
    'io|sì|grazie|ma|sbagliato|troppo|meglio|sempre|mai|ricorda|ik|nee|bedankt|maar|fout|niet|te|beter|altijd|nooit|voortaan',
    'eu|não|sim|mas|errado|demais|melhor|sempre|jag|nej|tack|men|fel|inte|alltid|aldrig|nei|takk|ikke|altid|forkert',
    'nie|tak|ale|proszę|źle|za|zawsze|nigdy|hayır|evet|lütfen|ama|yanlış|çok|her zaman|asla',
    'нет|да|но|спасибо|неверно|неправильно|слишком|не|всегда|никогда|впредь|ні|так|але|дякую|завжди|ніколи',
  ].join('|')})(?![\p{L}\p{N}])`,
  'iu',
);
/** A sentence, behind markup. */
const begins = /^\s*\n|^\s+[\p{Lu}\p{Lo}\p{N}]|^\p{Lu}/u;
const indented = /^(?:\t| {4})/;
const field = /^(?:[{}[\]|]|"[^"]{0,80}":)/;
/** With date and time, or seconds, or an address: a person also begins with a time, a price, or a date of which they say something. */
const logged =
  /^\[?(?:\d{4}-\d{2}-\d{2} +[^a-z\s]|\d{4}[-/.]\d{2}[-/.]\d{2}[T ]\d{2}:\d{2}|\d{2}[-/.]\d{2}[-/.]\d{2,4},? \d{1,2}:\d{2}|\d{1,2}:\d{2}:\d{2}|\d{1,3}(?:\.\d{1,3}){3}\b|(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL)\b)/;
/** "at run (main.ts:12:3)", "File "main.py", line 12". */
const traced =
  /^at .{1,300}:\d{1,7}:\d{1,7}\)?$|\.[A-Za-z]\w{0,8}:\d{1,7}(?::\d{1,7})?\)?$|^File "[^"]{1,200}", line \d/;

export function saidWords(text: string): string {
  const kept: string[] = [];
  const lines = withoutMarkup(markedWords(text)).split('\n');
  for (const [at, line] of lines.entries()) {
    const bare = line.trim();
    if (indented.test(line) || isFields(bare)) continue;
    const [, head = ''] = label.exec(bare) ?? [];
    // What a label or a rule begins has no end that could be seen.
    const introduces = bare.endsWith(':');
    const next = introduces ? lines.slice(at + 1).find((later) => later.trim() !== '') : undefined;
    const isOwnList = introduces && hasLastingWords(bare) && itemOfList(next) !== undefined;
    if (rule.test(bare) || (head !== '' && !spoken.test(head) && !isOwnList)) break;
    // It introduces what another wrote, and without that it is half of a sentence.
    if (introduces && !isOwnList) {
      kept.push(next === undefined ? bare : cutBetween(bare, ''));
      break;
    }
    kept.push(bare);
  }
  const said = kept.join('\n');
  return said.length > wordsCharactersMax ? '' : wholeSentences(said);
}

function isFields(line: string): boolean {
  return (
    field.test(line) ||
    logged.test(line) ||
    traced.test(line) ||
    line.includes('://') ||
    line.toLowerCase().includes('www.')
  );
}

/** From the first tag to the last, and to the end where that one opens something. */
function withoutMarkup(text: string): string {
  const tags = [...text.matchAll(tag)];
  const [first, last] = [tags[0], tags.at(-1)];
  if (first === undefined || last === undefined) return text;
  const end = last[0].startsWith('</') ? last.index + last[0].length : text.length;
  const rest = text.slice(end);
  return cutBetween(text.slice(0, first.index), begins.test(rest) ? `\n${rest}` : rest);
}
