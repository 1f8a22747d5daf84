// Is a part that failed to be tried again yet?
//
// In: successes and failures with the time at which they came. Out: whether to try. After `failuresMax` failures in a
// row it is left alone for `restMs`; then one try is let through, and its outcome decides. Pure: time is an argument.

export class Breaker {
  private failures = 0;
  private openUntilMs = 0;

  constructor(
    private readonly failuresMax: number,
    private readonly restMs: number,
  ) {}

  get isOpen(): boolean {
    return this.failures >= this.failuresMax;
  }

  /** True when a try may be made now. While open, a permitted try moves the rest on, so that only one goes through. */
  permits(nowMs: number): boolean {
    if (!this.isOpen) return true;
    if (nowMs < this.openUntilMs) return false;
    this.openUntilMs = nowMs + this.restMs;
    return true;
  }

  succeeded(): void {
    this.failures = 0;
  }

  failed(nowMs: number): void {
    this.failures += 1;
    if (this.isOpen) this.openUntilMs = nowMs + this.restMs;
  }
}
