// Why was a step not taken, and will it ever be?
// In: the code of the error, whether the step had begun, how often that has happened to this batch. Out: try again, or give the batch up.
// Only what lies in the batch itself gives it up: a worker that is away or wrongly set up costs no sample.

/** The training worker's own words for "the same batch would fail again". */
const inTheData = new Set(['step_not_finite', 'request_invalid']);
/** A batch that ends the worker each time must not hold up learning for ever. */
const brokenStepsMax = 10;

export interface StepFailure {
  readonly code: string;
  /** Failures in a row after the worker had begun with this batch. */
  readonly brokenSteps: number;
}

export function givesUp({ code, brokenSteps }: StepFailure): boolean {
  return inTheData.has(code) || brokenSteps >= brokenStepsMax;
}
