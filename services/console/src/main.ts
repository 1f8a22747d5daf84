// The page: puts its parts together, and looks at the lessons again and again while its tab is visible.
import { endLesson, KeyWanted, lessons, teach, TooOften, useKey, versions } from './endpoint.js';
import { itemOfLesson, itemOfVersion } from './items.js';
import { lessonCards, type LessonCard } from './lessons.js';
import { KeyedList } from './list.js';
import { Talk } from './talk.js';
import { versionCards, type VersionCard } from './versions.js';

/** While nothing is refused. A key with a small limit is looked for less often, from then on. */
let everyMs = 5_000;
const tooOftenMs = 60_000;
/** Within it after a sign was composed, Enter was pressed for that sign. */
const composedMs = 50;

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
  stop: part('stop', HTMLButtonElement),
  send: part('send', HTMLButtonElement),
  fail,
  giveBack: (said) => {
    // Before what was typed since.
    words.value = words.value === '' ? said : `${said}\n${words.value}`;
  },
});

const lessonList = new KeyedList<LessonCard>(part('lessons', HTMLElement), (card) =>
  itemOfLesson(card, () => {
    act();
    endLesson(card.id).then(look, fail);
  }),
);
const versionList = new KeyedList<VersionCard>(part('versions', HTMLElement), itemOfVersion);

/** @returns when to look again */
async function look(): Promise<number> {
  try {
    lessonList.show(lessonCards(await lessons()));
    const cards = versionCards(await versions());
    part('no-versions', HTMLElement).hidden = cards.length > 0;
    versionList.show(cards);
    key.hidden = true;
    trouble.hidden ||= !isOfAction;
    return everyMs;
  } catch (thrown) {
    if (thrown instanceof TooOften) {
      everyMs = Math.min(2 * everyMs, tooOftenMs);
      return tooOftenMs;
    }
    if (!isOfAction) say(thrown);
    return everyMs;
  }
}

async function watch(): Promise<void> {
  const isSeen = document.visibilityState === 'visible' && !talk.isAnswering;
  const againMs = isSeen ? await look() : everyMs;
  setTimeout(() => void watch(), againMs);
}

/** A form's words, given to an action; they stay where it fails, and what is typed meanwhile stays, too. */
function onSubmit(
  form: HTMLFormElement,
  field: HTMLInputElement | HTMLTextAreaElement,
  take: (said: string) => unknown,
) {
  let isPending = false;
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    const given = field.value;
    const said = given.trim();
    if (said === '' || isPending) return;
    act();
    isPending = true;
    Promise.resolve(take(said))
      .then((taken) => {
        if (taken !== false && field.value === given) field.value = '';
      }, fail)
      .finally(() => {
        isPending = false;
      });
  });
}

onSubmit(part('ask', HTMLFormElement), words, (said) => {
  const taken = talk.say(said);
  if (!taken) say(new TypeError('An answer is still coming: wait for its end, or stop it.'));
  words.focus();
  return taken;
});
let submission = { said: '', id: '' };
onSubmit(part('teach', HTMLFormElement), part('wish', HTMLInputElement), async (said) => {
  // Sent again after an error that hides whether it arrived, it is the same.
  if (submission.said !== said) submission = { said, id: String(Date.now()) };
  await teach(said, submission.id);
  submission = { said: '', id: '' };
  void look();
});
onSubmit(key, part('key-text', HTMLInputElement), (said) => {
  useKey(said);
  return look();
});
/** Safari ends the composition of a sign before it tells of the Enter that ended it. */
let composedAt = -Infinity;
words.addEventListener('compositionend', ({ timeStamp }) => {
  composedAt = timeStamp;
});
words.addEventListener('keydown', (event) => {
  if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
  if (event.timeStamp - composedAt < composedMs) return;
  event.preventDefault();
  words.form?.requestSubmit();
});
part('anew', HTMLButtonElement).addEventListener('click', () => {
  talk.anew();
});
void watch();
