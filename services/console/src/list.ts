// A list whose cards come anew every few seconds. In: cards, by id. Out: items, of which those whose card is as it was stay as they are:
// with the focus, and with what a reader opened or marked in them.

interface Shown {
  readonly card: string;
  readonly item: HTMLElement;
}

export class KeyedList<Card extends { readonly id: string }> {
  private shown = new Map<string, Shown>();

  constructor(
    private readonly list: HTMLElement,
    private readonly itemOf: (card: Card) => HTMLElement,
  ) {}

  show(cards: readonly Card[]): void {
    const before = this.shown;
    this.shown = new Map(cards.map((card) => [card.id, this.shownOf(card, before.get(card.id))]));
    for (const [id, { item }] of before) if (!this.shown.has(id)) item.remove();
    // What stands in its place already is not moved: that would take the focus from it.
    let place = this.list.firstElementChild;
    for (const { item } of this.shown.values()) {
      if (item === place) place = place.nextElementSibling;
      else this.list.insertBefore(item, place);
    }
  }

  private shownOf(card: Card, before: Shown | undefined): Shown {
    const now = JSON.stringify(card);
    if (before?.card === now) return before;
    const item = this.itemOf(card);
    if (before === undefined) return { card: now, item };
    for (const [at, was] of [...before.item.querySelectorAll('details')].entries()) {
      const details = item.querySelectorAll('details')[at];
      if (details !== undefined) details.open = was.open;
    }
    const hadFocus = before.item.contains(document.activeElement);
    before.item.replaceWith(item);
    if (hadFocus) {
      item.tabIndex = -1;
      item.focus();
    }
    return { card: now, item };
  }
}
