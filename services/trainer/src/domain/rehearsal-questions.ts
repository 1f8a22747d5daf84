// Questions of the trainer's own, on which lessons are rehearsed and measured: a wish about form fits any of them. They are neither those
// that versions are probed with nor those that a gate asks. Some are trained on, the others only measure.

/** Trained on. */
export const rehearsalQuestions: readonly string[] = [
  'How do I get a wine stain out of a tablecloth?',
  'Why do ships float although they are heavy?',
  'What makes a good cover letter?',
  'How does a thermos flask keep tea hot?',
  'Suggest a quiet hobby for long winter evenings.',
  'What is the difference between a fugue and a canon?',
  'How can I make a rainy Sunday less dull?',
  'Tell me about the history of coffee.',
  'How do I repot a cactus without hurting myself?',
  'What should I look at before I buy a used bicycle?',
  'Explain what inflation means.',
  'How is cork harvested?',
  'What can I do with leftover rice?',
  'Why do rivers wind from side to side?',
  'How should I prepare for a long train journey?',
  'Describe a walk through a forest after rain.',
  'How do I teach a dog to come when it is called?',
  'What does a conductor of an orchestra do?',
  'How can a small office save electricity?',
  'Which vegetables grow well in the shade?',
  'What is a leap year for?',
  'How do I write a polite complaint to a landlord?',
  'Why do some clocks tick?',
  'What is worth seeing in a small harbour town?',
];

/** Never trained on. */
export const measuringQuestions: readonly string[] = [
  'How do I keep a wooden cutting board clean?',
  'What causes a rainbow?',
  'How can I get better at remembering names?',
  'What is the purpose of a keystone in an arch?',
  'Give me some advice for a first day at a new school.',
  'How does a lighthouse help ships?',
  'What should I cook for a friend who eats no meat?',
  'Why do owls turn their heads so far?',
  'How do I oil a squeaking hinge?',
  'What is the point of a budget?',
  'Tell me something about windmills.',
  'How do I choose a good pair of walking shoes?',
];
