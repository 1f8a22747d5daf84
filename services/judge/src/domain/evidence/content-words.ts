// The words of a text that say what it is about. In: text. Out: their beginnings, so that "name" and "names" are one.

const beginning = 5;

const common = new Set(
  (
    'a an the is are was be do does did how what why when where who which can could should would will i you me my your ' +
    'we our us it its this that to of in on at for with and or but not from by as so if than then there some any tell ' +
    'please about'
  ).split(' '),
);

export function contentWords(text: string): Set<string> {
  const words = text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  return new Set(words.filter((word) => !common.has(word)).map((word) => word.slice(0, beginning)));
}
