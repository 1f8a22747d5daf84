// Where a model's answer begins, after what it thought. In: a text as the engine gave it, with the marks of whatever format the model was
// trained in, where the engine does not take them out. Out: the answer without thoughts; nothing where the thoughts never end. Pure.

/** Of a longer text, so much from its end: the answer is the last that is written. */
const lastCharacters = 8_192;

const thoughtMark =
  /<(\/?)(?:seed:)?(?:think|thinking|thoughts?|reasoning)>|\[(\/?)THINK\]|\u25c1(\/?)think\u25b7|<\|(START|END)_THINKING\|>/gi;
const finalChannel = '<|channel|>final<|message|>';
const anyChannel = '<|channel|>';
const channelEnd = /<\|(?:return|end|call)\|>/;
/** The same, from a decoder that drops special tokens. */
const channelWord = /^analysis(?=\p{Lu})/u;
const finalWord = 'assistantfinal';

export function answerIn(text: string): string | undefined {
  const final = inFinalChannel(text);
  return final === undefined ? undefined : withoutThoughts(final)?.slice(-lastCharacters);
}

function inFinalChannel(text: string): string | undefined {
  if (text.includes(anyChannel)) {
    const at = text.lastIndexOf(finalChannel);
    return at === -1 ? undefined : text.slice(at + finalChannel.length).split(channelEnd)[0];
  }
  if (!channelWord.test(text)) return text;
  const at = text.lastIndexOf(finalWord);
  return at === -1 ? undefined : text.slice(at + finalWord.length);
}

/** A closing mark without an opening one ends what the template opened. */
function withoutThoughts(text: string): string | undefined {
  let kept = '';
  let from = 0;
  let depth = 0;
  for (const { 0: mark, index, 1: tag, 2: bracket, 3: wedge, 4: token } of text.matchAll(thoughtMark)) {
    const closes = [tag, bracket, wedge].includes('/') || token?.toUpperCase() === 'END';
    if (depth === 0) kept = closes ? '' : kept + text.slice(from, index);
    depth = Math.max(0, depth + (closes ? -1 : 1));
    from = index + mark.length;
  }
  return depth > 0 ? undefined : kept + text.slice(from);
}
