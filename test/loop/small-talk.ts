// What the clients of a test say. Questions never repeat within a run; replies correct, praise or go on.
// In: chance. Out: words.
import type { Random } from './random.js';

const things = [
  'a kettle',
  'the tides',
  'a violin',
  'sourdough',
  'a glacier',
  'the metro',
  'a beehive',
  'porcelain',
] as const;
const askings = [
  'How does',
  'Why do people care about',
  'What is the history of',
  'Explain to a child',
  'What is odd about',
] as const;
const places = ['Lisbon', 'Oslo', 'Kyoto', 'Lima', 'Accra', 'Perth'] as const;

/** The number makes it another question than any before. */
export function question(random: Random, number: number): string {
  return `${random.pick(askings)} ${random.pick(things)} in ${random.pick(places)}, case ${String(number)} of ${String(random.below(900))}?`;
}

export const corrections = [
  'That is too long. Answer in one short sentence.',
  'No, please answer in one short sentence.',
  'Too much text. Use one short sentence.',
  'I asked for less. Keep it to one short sentence.',
  'Again, but answer in one short sentence only.',
] as const;

export const praises = ['Thanks, that is just what I needed.', 'Perfect, thank you!', 'Great answer, thanks.'] as const;
