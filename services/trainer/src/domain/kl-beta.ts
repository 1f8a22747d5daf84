// How strongly the next step is pulled to the base.
// In: the present weight, the KL to the base that the last step measured, the target (both nats an answer). Out: the next weight.
// The term costs a forward pass of the base, so it is off (0) until the policy has drifted beyond the target.

const klTolerance = 1.5;
const betaFactor = 2;
const betaMin = 0.001;
const betaMax = 1;

export function nextKlBeta(beta: number, measured: number | undefined, target: number): number {
  if (measured === undefined || !Number.isFinite(measured)) return beta;
  if (measured > target * klTolerance) return Math.min(Math.max(beta * betaFactor, betaMin), betaMax);
  if (measured < target / klTolerance) return beta / betaFactor < betaMin ? 0 : beta / betaFactor;
  return beta;
}
