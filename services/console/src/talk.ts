// The conversation on the page. In: what the person says. Out: what stands under "Talk", and which weights answered.
import { answer, feedback, type Answer, type Message, type Wishes } from './endpoint.js';

export interface TalkParts {
  readonly list: HTMLElement;
  readonly train: HTMLInputElement;
  readonly remind: HTMLInputElement;
  readonly weights: HTMLElement;
  /** To be pressed while an answer is coming. */
  readonly stop: HTMLButtonElement;
  /** To be pressed while none is. */
  readonly send: HTMLButtonElement;
  /** Shows what went wrong. */
  readonly fail: (thrown: unknown) => void;
  /** Of a question that got no answer. */
  readonly giveBack: (words: string) => void;
}

export class Talk {
  private messages: readonly Message[] = [];
  /** Counts them: an answer of an earlier one is shown no more. */
  private conversation = 1;
  /** In this conversation it was said that nothing is to be learned: that holds until the opposite is said. */
  private wasOff = false;
  private coming: AbortController | undefined;
  /** Before the box was touched, what the endpoint is set to holds. */
  private remindSaid = false;

  constructor(private readonly parts: TalkParts) {
    parts.stop.addEventListener('click', () => {
      this.stop();
    });
    parts.remind.addEventListener('change', () => {
      this.remindSaid = true;
    });
  }

  anew(): void {
    this.messages = [];
    this.conversation += 1;
    this.wasOff = false;
    this.parts.list.replaceChildren();
    this.stop();
  }

  /** What was said of an answer that is still coming stays. */
  stop(): void {
    this.coming?.abort();
  }

  /** @returns false while an answer is still coming: the words are not taken then */
  say(words: string): boolean {
    if (this.coming !== undefined) return false;
    const coming = new AbortController();
    this.nowComing(coming);
    this.hear(words, coming.signal)
      .catch(this.parts.fail)
      .finally(() => {
        this.nowComing(undefined);
      });
    return true;
  }

  get isAnswering(): boolean {
    return this.coming !== undefined;
  }

  private nowComing(coming: AbortController | undefined): void {
    const { stop, send } = this.parts;
    this.coming = coming;
    stop.hidden = coming === undefined;
    send.hidden = coming !== undefined;
  }

  private async hear(words: string, signal: AbortSignal): Promise<void> {
    const { list, giveBack } = this.parts;
    const wishes = { ...this.consent(), ...this.reminders() };
    const asked = entry('user', words);
    const { item, text } = entry('assistant', '');
    // What is still being written is read out once it is whole.
    item.setAttribute('aria-busy', 'true');
    list.append(asked.item, item);
    const { conversation } = this;
    const said: Message[] = [...this.messages, { role: 'user', content: words }];
    const hear = (more: string) => {
      text.textContent += more;
    };
    try {
      const given = await answer(said, wishes, hear, signal);
      if (this.conversation !== conversation) return;
      item.removeAttribute('aria-busy');
      this.messages = [...said, { role: 'assistant', content: text.textContent }];
      this.note(item, given);
    } catch (thrown) {
      if (this.conversation !== conversation) return;
      for (const one of [asked.item, item]) one.remove();
      giveBack(words);
      if (!signal.aborted) throw thrown;
    }
  }

  /** A box that was never unticked says nothing: what the key allows holds. */
  private consent(): Pick<Wishes, 'train'> {
    const { checked } = this.parts.train;
    this.wasOff ||= !checked;
    return this.wasOff ? { train: checked ? 'on' : 'off' } : {};
  }

  private reminders(): Pick<Wishes, 'remind'> {
    return this.remindSaid ? { remind: this.parts.remind.checked ? 'on' : 'off' } : {};
  }

  private note(item: HTMLElement, given: Answer): void {
    const about = document.createElement('small');
    about.textContent = aboutAnswer(given);
    item.append(about);
    if (given.fullShare === '') item.append(this.thumbsOf(given));
    this.parts.weights.textContent = `${given.weights} gave the last answer`;
  }

  private thumbsOf({ turn }: Answer): HTMLElement {
    const thumbs = document.createElement('div');
    thumbs.role = 'status';
    // Where the focus goes once its button is gone.
    thumbs.tabIndex = -1;
    const buttons = (
      [
        [1, 'Good'],
        [-1, 'Not good'],
      ] as const
    ).map(([score, label]) => {
      const button = document.createElement('button');
      button.textContent = label;
      button.addEventListener('click', () => {
        for (const one of buttons) one.disabled = true;
        feedback(turn, score, this.consent())
          .then(() => {
            thumbs.replaceChildren(`Noted: ${label.toLowerCase()}.`);
            thumbs.focus();
          })
          .catch((thrown: unknown) => {
            for (const one of buttons) one.disabled = false;
            this.parts.fail(thrown);
          });
      });
      return button;
    });
    thumbs.append(...buttons);
    return thumbs;
  }
}

function aboutAnswer({ weights, shown, stopped, fullShare, trains }: Answer): string {
  const reminded = shown === 0 ? '' : `, reminded of ${String(shown)} lesson${shown === 1 ? '' : 's'}`;
  const told = `${weights} answered${reminded}${stopped ? ' until you stopped it' : ''}.`;
  if (fullShare !== '')
    return `${told} This answer is not recorded, and nothing is learned from it: the day's share of the log of this ${fullShare} is full.`;
  return trains ? `${told} Just answer back, or:` : `${told} Nothing is learned from it. Is it any good?`;
}

function entry(role: Message['role'], words: string): { readonly item: HTMLElement; readonly text: HTMLElement } {
  const item = document.createElement('li');
  item.className = role;
  const text = document.createElement('p');
  text.dir = 'auto';
  text.textContent = words;
  item.append(text);
  return { item, text };
}
