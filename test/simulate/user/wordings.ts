// What the simulated user says. Each correction is a complaint and an instruction in words of its own; `rude` and `polite`
// people both want the same thing: an answer in one short sentence.

export const corrections: readonly string[] = [
  "That's too long. Answer in one short sentence.",
  'Too much text! Please answer in one short sentence.',
  "I didn't ask for an essay. Give me your answer in one short sentence.",
  'Hmm, that is more than I can read right now. Please keep your answer to one short sentence.',
  'Way too wordy. I want one short sentence as an answer.',
  'Could you be briefer? Answer with one short sentence, please.',
  'You lost me halfway. Always answer me in one short sentence.',
];

export const complaintsOfNonsense: readonly string[] = [
  "That doesn't answer my question.",
  'This makes no sense to me.',
  "That's not what I asked about.",
];

export const praises: readonly string[] = [
  'Perfect, thank you!',
  "Great, that's exactly what I needed.",
  'Thanks, short and clear.',
  'Lovely, that helps a lot.',
  'Nice one, thanks.',
];

export const followUps: readonly string[] = [
  'Good to know. And what should I try first?',
  'Thanks! Is there anything to watch out for?',
  'Okay, and how long does that take?',
  'Got it. Does that always work?',
];
