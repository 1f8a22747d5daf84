// What a part's /metrics says. In: its text. Out: sums of samples by name and labels. It reads what our own parts write, no more.

const sample = /^([a-z_]+)(?:\{([^}]*)\})? (\S+)$/;

interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export class Metrics {
  private readonly samples: readonly Sample[];

  constructor(text: string) {
    this.samples = text.split('\n').flatMap((line) => {
      const [, name, labels = '', value] = sample.exec(line) ?? [];
      if (name === undefined) return [];
      // No value of ours has a comma or a quotation mark in it.
      const pairs = labels.split(',').map((pair) => pair.replaceAll('"', '').split('='));
      return [{ name, labels: Object.fromEntries(pairs) as Sample['labels'], value: Number(value) }];
    });
  }

  /** 0 where there is no such metric. */
  sum(name: string, labels: Readonly<Record<string, string>> = {}): number {
    return this.of(name, labels).reduce((total, { value }) => total + value, 0);
  }

  /** Sums above 0, by the values of one label. */
  by(name: string, key: string, labels: Readonly<Record<string, string>> = {}): Readonly<Record<string, number>> {
    const sums: Record<string, number> = {};
    for (const { labels: own, value } of this.of(name, labels)) {
      const word = own[key] ?? '';
      if (value > 0) sums[word] = (sums[word] ?? 0) + value;
    }
    return sums;
  }

  private of(name: string, labels: Readonly<Record<string, string>>): readonly Sample[] {
    const wanted = Object.entries(labels);
    return this.samples.filter(
      (each) => each.name === name && wanted.every(([key, word]) => each.labels[key] === word),
    );
  }
}
