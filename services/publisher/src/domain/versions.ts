/**
 * Names of weights versions: `<policy>-v<number>`; number 0 is the base model itself, which needs no loading.
 */
export function baseVersionOf(policy: string): string {
  return `${policy}-v0`;
}

/** The version's number; undefined when the name belongs to another policy or to nothing. */
export function numberOf(policy: string, version: string): number | undefined {
  const digits = version.startsWith(`${policy}-v`) ? version.slice(policy.length + 2) : '';
  return /^\d{1,15}$/.test(digits) ? Number(digits) : undefined;
}
