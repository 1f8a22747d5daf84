// Questions of the trainer's own, on which lessons are rehearsed and measured: a wish about form fits any of them. They are neither those
// that versions are probed with nor those that a gate asks. Some are trained on, the others only measure.

/** Trained on. */
export const rehearsalQuestions: readonly string[] = [
  'How do I get a wine stain out of a tablecloth?',
  'Why do leaves change colour in autumn?',
  'What makes a good cover letter?',
  'How does a microwave oven heat food?',
  'Suggest a quiet hobby for long winter evenings.',
  'What is the difference between a comet and an asteroid?',
  'How can I fall asleep faster?',
  'Tell me about the history of coffee.',
  'How do I repot a cactus without hurting myself?',
  'What should I look at before I buy a used bicycle?',
  'Explain what inflation means.',
  'How do bees make honey?',
  'What can I do with leftover rice?',
  'Why is the sea salty?',
  'How should I prepare for a job interview?',
  'Describe a walk through a forest after rain.',
  'How do I teach a dog to come when it is called?',
  'What does a conductor of an orchestra do?',
  'How can a small office save electricity?',
  'Which vegetables grow well in the shade?',
  'What is a leap year for?',
  'How do I write a polite complaint to a landlord?',
  'Why do we yawn?',
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
  'Why do cats purr?',
  'How do I sharpen a kitchen knife?',
  'What is the point of a budget?',
  'Tell me something about volcanoes.',
  'How do I choose a good pair of walking shoes?',
];
