// The page: puts its parts together, and looks at the lessons again and again while its tab is visible.
import { endLesson, KeyWanted, lessons, teach, TooOften, useKey, versions } from './endpoint.js';
import { lessonCards, type LessonCard } from './lessons.js';
import { Talk } from './talk.js';
import { versionCards, type Compared, type VersionCard } from './versions.js';

const everyMs = 5_000;
/** A key with a small limit is left to what its person asks. */
const tooOftenMs = 60_000;

function part<T extends HTMLElement>(id: string, kind: new () => T): T {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) throw new TypeError(`The page has no ${id}.`);
  return found;
}

const trouble = part('trouble', HTMLElement);
const key = part('key', HTMLFormElement);
const words = part('words', HTMLTextAreaElement);

/** Whether what went wrong was asked for by a person: then it stays until they ask for something else. */
let isOfAction = false;

function say(thrown: unknown): void {
  key.hidden &&= !(thrown instanceof KeyWanted);
  trouble.textContent = thrown instanceof Error ? thrown.message : String(thrown);
  trouble.hidden = false;
}

function fail(thrown: unknown): void {
  isOfAction = true;
  say(thrown);
}

function act(): void {
  isOfAction = false;
  trouble.hidden = true;
}

const talk = new Talk({
  list: part('talk', HTMLElement),
  train: part('train', HTMLInputElement),
  remind: part('remind', HTMLInputElement),
  weights: part('weights', HTMLElement),
  fail,
  giveBack: (said) => {
    // Before what was typed since.
    words.value = words.value === '' ? said : `${said}\n${words.value}`;
  },
});

function lessonItem(card: LessonCard): HTMLElement {
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
    const end = document.createElement('button');
    end.textContent = 'End it';
    end.setAttribute('aria-label', `End: ${card.text}`);
    end.addEventListener('click', () => {
      act();
      endLesson(card.id).then(look, fail);
    });
    line.append(end);
  }
  item.append(worded('p', card.text), line, worded('small', card.details.join(' · ')));
  if (card.changed.length > 0) item.append(beforeAndAfter('What you corrected, asked again', card.changed, true));
  return item;
}

function worded(kind: 'p' | 'dt' | 'dd' | 'small' | 'strong' | 'summary', words: string): HTMLElement {
  const element = document.createElement(kind);
  element.textContent = words;
  element.dir = 'auto';
  return element;
}

function versionItem(card: VersionCard): HTMLElement {
  const item = document.createElement('li');
  item.className = card.stage;
  const line = document.createElement('div');
  const when = document.createElement('time');
  when.dateTime = card.stagedAt;
  when.textContent = new Date(card.stagedAt).toLocaleString();
  line.append(worded('p', card.id), worded('strong', card.label), when);
  item.append(line);
  if (card.about !== '') item.append(worded('small', card.about));
  if (card.changed.length === 0) return item;
  item.append(beforeAndAfter('Before and after', card.changed, card.stage === 'serving'));
  return item;
}

function beforeAndAfter(title: string, pairs: readonly Compared[], isOpen: boolean): HTMLElement {
  const answers = document.createElement('details');
  answers.open = isOpen;
  answers.append(worded('summary', title));
  for (const { question, before, after } of pairs) {
    const pair = document.createElement('dl');
    pair.append(worded('dt', question), worded('dd', `before: ${before}`), worded('dd', `now: ${after}`));
    answers.append(pair);
  }
  return answers;
}

/** As shown now, by list: what a reader opened or marked stays as it is while nothing is new. */
const shown = new Map<string, string>();

function show<Card>(list: string, cards: readonly Card[], itemOf: (card: Card) => HTMLElement): void {
  const now = JSON.stringify(cards);
  if (now === shown.get(list)) return;
  shown.set(list, now);
  part(list, HTMLElement).replaceChildren(...cards.map(itemOf));
}

/** @returns when to look again */
async function look(): Promise<number> {
  try {
    // One after the other: a key may have one request at a time.
    const known = await lessons();
    const made = await versions();
    const cards = versionCards(made);
    part('no-versions', HTMLElement).hidden = cards.length > 0;
    show('lessons', lessonCards(known), lessonItem);
    show('versions', cards, versionItem);
    key.hidden = true;
    trouble.hidden ||= !isOfAction;
    return everyMs;
  } catch (thrown) {
    if (!isOfAction) say(thrown);
    return thrown instanceof TooOften ? tooOftenMs : everyMs;
  }
}

async function watch(): Promise<void> {
  const isSeen = document.visibilityState === 'visible' && !talk.isAnswering;
  const againMs = isSeen ? await look() : everyMs;
  setTimeout(() => void watch(), againMs);
}

/** A form's words, given to an action; they stay where it fails. */
function onSubmit(
  form: HTMLFormElement,
  field: HTMLInputElement | HTMLTextAreaElement,
  take: (said: string) => unknown,
) {
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    const said = field.value.trim();
    if (said === '') return;
    act();
    Promise.resolve(take(said)).then((taken) => {
      if (taken !== false) field.value = '';
    }, fail);
  });
}

onSubmit(part('ask', HTMLFormElement), words, (said) => {
  const taken = talk.say(said);
  words.focus();
  return taken;
});
onSubmit(part('teach', HTMLFormElement), part('wish', HTMLInputElement), async (said) => {
  await teach(said);
  await look();
});
onSubmit(key, part('key-text', HTMLInputElement), (said) => {
  useKey(said);
  return look();
});
words.addEventListener('keydown', (event) => {
  if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  words.form?.requestSubmit();
});
part('anew', HTMLButtonElement).addEventListener('click', () => talk.anew());
void watch();
