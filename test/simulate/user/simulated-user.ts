// A simulated user: asks everyday questions, reads the answer as a person would, and goes on, praises, corrects in its own
// words, complains of nonsense, or says nothing. Seeded: the same seed and the same answers give the same talk.
// It knows nothing of the judge and the scorer; its wish and its words are those of its file.
import type { Random } from './random.js';
import { violates, type SeenAnswer } from './rule.js';
import type { UserFile } from './user-file.js';

export interface UserHabits {
  /** Share of unwanted answers that it corrects; it shrugs at the rest. */
  readonly corrects: number;
  /** Share of wanted answers for which it says thanks; half as many lead to a further question. */
  readonly praises: number;
  /** Share of wanted answers that share no word with their question, of which it complains. */
  readonly complains: number;
}

interface Spoken {
  readonly kind: 'correct' | 'complain' | 'praise' | 'follow-up';
  readonly words: string;
}
export type Reaction = Spoken | { readonly kind: 'leave' };

const leave: Reaction = { kind: 'leave' };

const defaultHabits: UserHabits = { corrects: 0.85, praises: 0.6, complains: 0.5 };

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

export class SimulatedUser {
  private deck: string[] = [];

  constructor(
    private readonly file: UserFile,
    private readonly random: Random,
    private readonly habits: UserHabits = defaultHabits,
  ) {}

  /** Every question comes once before any comes again. */
  question(): string {
    if (this.deck.length === 0) this.deck = this.random.shuffled(this.file.questions.train);
    return this.deck.pop() ?? '';
  }

  async react(question: string, answer: SeenAnswer): Promise<Reaction> {
    const { rule, corrections, satisfied, complaints, follow_ups: followUps } = this.file;
    if (violates(rule, answer)) return this.perhaps(this.habits.corrects, 'correct', corrections) ?? leave;
    if (!seemsOnTopic(question, answer.text) && complaints.length > 0) {
      const complaint = this.perhaps(this.habits.complains, 'complain', complaints);
      if (complaint !== undefined) return complaint;
    }
    const praise = this.perhaps(this.habits.praises, 'praise', satisfied);
    return praise ?? this.perhaps(this.habits.praises / 2, 'follow-up', followUps) ?? leave;
  }

  private perhaps(share: number, kind: Spoken['kind'], sayings: readonly string[]): Reaction | undefined {
    const speaks = this.random.chance(share) && sayings.length > 0;
    return speaks ? { kind, words: this.random.pick(sayings) } : undefined;
  }
}
