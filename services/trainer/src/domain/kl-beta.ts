// How strongly the next step is pulled to the base.
// In: the present weight, the KL to the base that the last step measured, the target (both nats an answer). Out: the next weight.
// The term costs a forward pass of the base, so it is off (0) until the policy has drifted beyond the target.

const TOLERANCE = 1.5;
const FACTOR = 2;
const BETA_MIN = 0.001;
const BETA_MAX = 1;

export function nextKlBeta(beta: number, measured: number | undefined, target: number): number {
  if (measured === undefined || !Number.isFinite(measured)) return beta;
  if (measured > target * TOLERANCE) return Math.min(Math.max(beta * FACTOR, BETA_MIN), BETA_MAX);
  if (measured < target / TOLERANCE) return beta / FACTOR < BETA_MIN ? 0 : beta / FACTOR;
  return beta;
}
