// Which words say nothing of who wrote them? In: words of a hint, in small letters. Out: those of its language that stand in any text,
// and what any hint says. Pure.
import stopword from 'stopword';

/** What asks, and what every hint says of answers, in the language that hints are asked for in; and please and must in others. */
const ofHints =
  'please should must will would can could do does not no every just when where what how answer answers reply replies response responses user ' +
  'users assistant always use using write give make keep say provide include again bitte muss plaît faut favor debe ' +
  'favore deve alsjeblieft moet snälla måste proszę musi prosím пожалуйста нужно ласка треба lütfen tolong';
/** Where no space stands between words, pairs of characters. */
const pairs =
  '请用 请不 请你 請用 請不 不要 要用 使用 回答 这个 這個 那个 那個 这样 這樣 一个 一個 我的 你的 可以 应该 應該 用户 用戶 这是 那是 不是 答案 ' +
  'くだ ださ さい して てく てい ない です ます まし した する こと これ それ この その あの では でも から まで より 答え 回答';

const ofAny = [...ofHints.split(' '), ...pairs.split(' ')];
const english = setOf(stopword.eng);
const languages = Object.values(stopword)
  .filter((list) => Array.isArray(list))
  .map((list) => setOf(list));

/**
 * A word is empty in one language and says something in another ("die", "war"): that counts in which most of the words are. Beside it
 * English, in which hints quote words of others.
 */
export function isEmptyIn(words: readonly string[]): (word: string) => boolean {
  const countIn = (empty: ReadonlySet<string>) => words.filter((word) => empty.has(word)).length;
  const own = languages.reduce((most, one) => (countIn(one) > countIn(most) ? one : most), english);
  return (word) => own.has(word) || english.has(word);
}

function setOf(list: readonly string[]): ReadonlySet<string> {
  return new Set([...list.map((word) => word.normalize('NFC').toLowerCase()), ...ofAny]);
}
