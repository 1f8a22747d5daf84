// What a weights version is called, and which number a name carries.
// In: policy and number, or a name. Out: the name, or the number. Never decides what exists.

export function versionName(policy: string, number: number): string {
  return `${policy}-v${number}`;
}

/** The base model, without an adapter, is version 0. */
export function baseVersion(policy: string): string {
  return versionName(policy, 0);
}

export function versionNumber(policy: string, name: string): number | undefined {
  const prefix = `${policy}-v`;
  if (!name.startsWith(prefix)) return undefined;
  const digits = name.slice(prefix.length);
  return /^(0|[1-9]\d*)$/.test(digits) ? Number(digits) : undefined;
}
