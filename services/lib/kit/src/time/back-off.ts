// How long to wait before the next try. Pure but for chance.

export interface BackOff {
  readonly firstMs: number;
  readonly mostMs: number;
}

/** Doubles with every try; half of it is by chance, so that what failed together does not come back together. */
export function backOffMs(tries: number, { firstMs, mostMs }: BackOff, random: () => number = Math.random): number {
  const full = Math.min(mostMs, firstMs * 2 ** Math.min(tries - 1, 30));
  return Math.round(full * (0.5 + random() / 2));
}
