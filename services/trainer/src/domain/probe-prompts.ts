// What is every version asked, so that parity and drift are measured on the same ground?
// Out: everyday prompts as the training worker and the gate read them. They are part of the step's plan: changing one changes its digest.

const probeCount: readonly string[] = [
  'What should I pack for a weekend by the sea?',
  'How do I boil an egg so that the yolk stays soft?',
  'Give me an idea for a birthday present for my grandmother.',
  'How does a refrigerator keep food cold?',
];

export function probePrompts(): Uint8Array[] {
  return probeCount.map((content) => new TextEncoder().encode(JSON.stringify([{ role: 'user', content }])));
}
