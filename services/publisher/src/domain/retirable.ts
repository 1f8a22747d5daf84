/**
 * Which unwanted versions may be unloaded now. Pure.
 */
export interface RetirableInput {
  /** Unwanted versions, with when they became so. */
  readonly since: ReadonlyMap<string, number>;
  /** What each gateway says; undefined for one that could not be asked. */
  readonly reports: readonly ({ readonly fence: number; readonly inFlight: ReadonlyMap<string, number> } | undefined)[];
  /** A gateway with a lower fence may still open streams on an old version. */
  readonly fence: number;
  readonly now: number;
  readonly streamMaxMs: number;
}

export function retirable({ since, reports, fence, now, streamMaxMs }: RetirableInput): string[] {
  return [...since]
    .filter(([version, at]) => {
      if (now - at >= streamMaxMs) return true;
      return reports.every(
        (report) => report !== undefined && report.fence >= fence && (report.inFlight.get(version) ?? 0) === 0,
      );
    })
    .map(([version]) => version);
}
