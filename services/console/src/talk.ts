// The conversation on the page. In: what the person says. Out: what stands under "Talk", and which weights answered.
import { answer, feedback, modelName, type Answer, type Message, type Wishes } from './endpoint.js';

export interface TalkParts {
  readonly list: HTMLElement;
  readonly train: HTMLInputElement;
  readonly remind: HTMLInputElement;
  readonly weights: HTMLElement;
  /** Shows what went wrong. */
  readonly fail: (thrown: unknown) => void;
  /** Of a question that got no answer. */
  readonly giveBack: (words: string) => void;
}

export class Talk {
  private messages: Message[] = [];
  private answering = false;
  /** In this conversation it was said that nothing is to be learned: that holds until the opposite is said. */
  private wasOff = false;

  constructor(private readonly parts: TalkParts) {}

  anew(): void {
    if (this.answering) return;
    this.messages = [];
    this.wasOff = false;
    this.parts.list.replaceChildren();
  }

  /** @returns false while an answer is still coming: the words are not taken then */
  say(words: string): boolean {
    if (this.answering) return false;
    this.answering = true;
    this.hear(words)
      .catch(this.parts.fail)
      .finally(() => {
        this.answering = false;
      });
    return true;
  }

  private async hear(words: string): Promise<void> {
    const { list, remind } = this.parts;
    const wishes = { ...this.consent(), remind: remind.checked };
    const asked = entry('user', words);
    const { item, text } = entry('assistant', '');
    // What is still being written is read out once it is whole.
    item.setAttribute('aria-busy', 'true');
    list.append(asked.item, item);
    const said: Message[] = [...this.messages, { role: 'user', content: words }];
    try {
      const given = await answer(await modelName(), said, wishes, (more) => {
        text.textContent += more;
      });
      item.removeAttribute('aria-busy');
      this.messages = [...said, { role: 'assistant', content: text.textContent }];
      this.note(item, given);
    } catch (thrown) {
      for (const one of [asked, { item }]) one.item.remove();
      this.parts.giveBack(words);
      throw thrown;
    }
  }

  get isAnswering(): boolean {
    return this.answering;
  }

  /** A box that was never unticked says nothing: what the key allows holds. */
  private consent(): Pick<Wishes, 'train'> {
    const { checked } = this.parts.train;
    this.wasOff ||= !checked;
    return this.wasOff ? { train: checked ? 'on' : 'off' } : {};
  }

  private note(item: HTMLElement, { turn, weights, shown }: Answer): void {
    const about = document.createElement('small');
    const reminded = shown === 0 ? '' : `, reminded of ${shown} lesson${shown === 1 ? '' : 's'}`;
    about.textContent = `${weights} answered${reminded}. Just answer back, or:`;
    const thumbs = document.createElement('div');
    thumbs.role = 'status';
    for (const [score, label] of [
      [1, 'Good'],
      [-1, 'Not good'],
    ] as const) {
      const button = document.createElement('button');
      button.textContent = label;
      button.addEventListener('click', () => {
        feedback(turn, score, this.consent()).then(
          () => thumbs.replaceChildren(`Noted: ${label.toLowerCase()}.`),
          this.parts.fail,
        );
      });
      thumbs.append(button);
    }
    item.append(about, thumbs);
    this.parts.weights.textContent = `${weights} gave the last answer`;
  }
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
