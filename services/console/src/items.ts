// What stands on the page for a card. In: a card. Out: its item, in which words are text, never markup.
import type { LessonCard } from './lessons.js';
import type { Compared, VersionCard } from './versions.js';

export function itemOfLesson(card: LessonCard, end: () => void): HTMLElement {
  const item = document.createElement('li');
  item.className = card.state;
  const line = document.createElement('div');
  line.append(worded('strong', card.label));
  if (card.progress !== undefined) {
    const bar = document.createElement('progress');
    bar.value = card.progress;
    bar.title = `${card.progress.toFixed(2)} of what the model does when it is told so`;
    line.append(bar);
  }
  if (card.mayEnd) {
    const button = document.createElement('button');
    button.textContent = 'End it';
    button.setAttribute('aria-label', `End: ${card.text}`);
    button.addEventListener('click', end);
    line.append(button);
  }
  item.append(worded('p', card.text), line, worded('small', card.details.join(' · ')));
  if (card.changed.length > 0)
    item.append(
      beforeAndAfter({
        title: 'What you corrected, asked again',
        pairs: card.changed,
        names: ['before', 'asked again'],
        isOpen: true,
      }),
    );
  return item;
}

export function itemOfVersion(card: VersionCard): HTMLElement {
  const item = document.createElement('li');
  item.className = card.stage;
  const line = document.createElement('div');
  const when = document.createElement('time');
  when.dateTime = card.stagedAt;
  when.textContent = new Date(card.stagedAt).toLocaleString();
  line.append(worded('p', card.id), worded('strong', card.label), when);
  item.append(line);
  if (card.about !== '') item.append(worded('small', card.about));
  if (card.changed.length > 0)
    item.append(
      beforeAndAfter({
        title: 'Before and after',
        pairs: card.changed,
        names: [card.previous, card.id],
        isOpen: card.stage === 'serving',
      }),
    );
  return item;
}

interface BeforeAndAfter {
  readonly title: string;
  readonly pairs: readonly Compared[];
  /** Who gave the two answers. */
  readonly names: readonly [before: string, after: string];
  readonly isOpen: boolean;
}

function beforeAndAfter({ title, pairs, names, isOpen }: BeforeAndAfter): HTMLElement {
  const answers = document.createElement('details');
  answers.open = isOpen;
  answers.append(worded('summary', title));
  for (const { question, before, after } of pairs) {
    const pair = document.createElement('dl');
    pair.append(worded('dt', question), answered(names[0], before), answered(names[1], after));
    answers.append(pair);
  }
  return answers;
}

/** The name apart, so that an answer is laid out in the direction of its own first letter. */
function answered(name: string, words: string): HTMLElement {
  const element = document.createElement('dd');
  element.append(worded('small', name), worded('p', words));
  return element;
}

function worded(kind: 'p' | 'dt' | 'small' | 'strong' | 'summary', words: string): HTMLElement {
  const element = document.createElement(kind);
  element.textContent = words;
  element.dir = 'auto';
  return element;
}
