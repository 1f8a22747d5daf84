/**
 * Names of weights versions: `<policy>-v<number>`; number 0 is the base model itself.
 */
export function baseVersionOf(policy: string): string {
  return `${policy}-v0`;
}

export function isVersionOf(policy: string, name: string): boolean {
  return name.startsWith(`${policy}-v`) && /^\d+$/.test(name.slice(policy.length + 2));
}
