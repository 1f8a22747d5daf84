// The simulated user `short`: asks everyday questions, reads the answer as a person would, and goes on, praises, corrects in
// its own words, complains of nonsense, or says nothing. Seeded: the same seed and the same answers give the same talk.
// It knows nothing of the judge and the scorer; its taste is its own.
import { everydayQuestions } from './questions.js';
import { complaintsOfNonsense, corrections, followUps, praises } from './wordings.js';
import type { Random } from './random.js';

export interface ShortUserHabits {
  /** Share of unwanted answers that it corrects; it shrugs at the rest. */
  readonly corrects: number;
  /** Share of wanted answers for which it says thanks; half as many lead to a further question. */
  readonly praises: number;
}

export type Reaction =
  | { readonly kind: 'correct' | 'complain' | 'praise' | 'follow-up'; readonly words: string }
  | { readonly kind: 'leave' };

const defaultHabits: ShortUserHabits = { corrects: 0.85, praises: 0.6 };

const wordsMin = 3;
const wordsMax = 25;

function isShortEnough(answer: string): boolean {
  const words = answer.trim().split(/\s+/).filter(Boolean);
  const sentences = answer.trim().match(/[.!?]+(?=\s|$)/g) ?? [];
  return (
    words.length >= wordsMin && words.length <= wordsMax && sentences.length <= 1 && /[.!?]["')]?$/.test(answer.trim())
  );
}

const smallWords = new Set(
  'a an and are as at be by can do does for from get good how i in is it keep make me my of on or should the to what when who why with you your'.split(
    ' ',
  ),
);

function stems(text: string): string[] {
  return (text.toLowerCase().match(/[a-z']+/g) ?? [])
    .filter((word) => !smallWords.has(word))
    .map((word) => word.slice(0, 4));
}

/** A person's glance, not a measurement: does the answer share a word with the question? */
function seemsOnTopic(question: string, answer: string): boolean {
  const asked = new Set(stems(question));
  return asked.size === 0 || stems(answer).some((stem) => asked.has(stem));
}

export class ShortUser {
  private deck: string[] = [];

  constructor(
    private readonly random: Random,
    private readonly habits: ShortUserHabits = defaultHabits,
  ) {}

  /** Every question comes once before any comes again. */
  question(): string {
    if (this.deck.length === 0) this.deck = this.random.shuffled(everydayQuestions);
    return this.deck.pop() ?? everydayQuestions[0] ?? '';
  }

  react(question: string, answer: string): Reaction {
    if (!isShortEnough(answer)) {
      return this.random.chance(this.habits.corrects)
        ? { kind: 'correct', words: this.random.pick(corrections) }
        : { kind: 'leave' };
    }
    if (!seemsOnTopic(question, answer) && this.random.chance(0.5)) {
      return { kind: 'complain', words: this.random.pick(complaintsOfNonsense) };
    }
    if (this.random.chance(this.habits.praises)) return { kind: 'praise', words: this.random.pick(praises) };
    return this.random.chance(this.habits.praises / 2)
      ? { kind: 'follow-up', words: this.random.pick(followUps) }
      : { kind: 'leave' };
  }
}
