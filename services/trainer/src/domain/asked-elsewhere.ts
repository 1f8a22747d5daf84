// Does a correction come back by itself, or with its question? What is right about one matter ("the capital is Oslo") returns where the same
// is asked; a wish returns wherever something is. It goes by the words of the questions, in any language. Pure.
import type { LessonCase } from '@backtalk/proto/facts';

/** What people had asked, by turn; a turn that the log holds no more is not in it. */
export type Questions = ReadonlyMap<string, string>;

/** Of all the characters in words of either, the share in words of both. */
const sameFrom = 0.6;

/** Whether one of a lesson's turns was asked something else than this turn. What is not known is taken for the same. */
export function isAskedElsewhere(cases: readonly LessonCase[], turn: string, questions: Questions): boolean {
  const asked = wordsIn(questions.get(turn));
  if (asked.size === 0) return false;
  return cases.some((before) => {
    const other = wordsIn(questions.get(before.turn));
    return other.size > 0 && shareOfBoth(asked, other) < sameFrom;
  });
}

const charactersMax = 2_000;
/** Chinese, Japanese and Thai part their words by nothing that is written. */
const words = new Intl.Segmenter('en', { granularity: 'word' });

/** In small letters. */
export function wordsIn(text = ''): ReadonlySet<string> {
  const segments = [...words.segment(text.slice(0, charactersMax).toLowerCase())];
  return new Set(segments.flatMap(({ segment, isWordLike }) => (isWordLike === true ? [segment] : [])));
}

/** Long words tell more than short ones. */
function shareOfBoth(a: ReadonlySet<string>, b: ReadonlySet<string>): number {
  const shared = charactersOf([...a].filter((word) => b.has(word)));
  return shared / (charactersOf(a) + charactersOf(b) - shared);
}

function charactersOf(words: Iterable<string>): number {
  return [...words].reduce((sum, word) => sum + word.length, 0);
}
