// Names of weights versions: `<policy>-v<number>`. A name is never used again; number 0 is the base model without an adapter.

/** More digits are no number that any policy reaches. */
const pattern = /^(.+)-v(0|[1-9]\d{0,14})$/;

export function versionName(policy: string, number: number): string {
  return `${policy}-v${number}`;
}

export function baseVersion(policy: string): string {
  return versionName(policy, 0);
}

export function isBaseVersion(name: string): boolean {
  return versionParts(name)?.number === 0;
}

/** Undefined for what is no version's name. A policy may hold `-v1` itself: the last one counts. */
export function versionParts(name: string): { readonly policy: string; readonly number: number } | undefined {
  const [, policy, digits] = pattern.exec(name) ?? [];
  return policy === undefined ? undefined : { policy, number: Number(digits) };
}

/** The number of one of the policy's versions; undefined for another policy's and for other names. */
export function versionNumber(policy: string, name: string): number | undefined {
  const parts = versionParts(name);
  return parts?.policy === policy ? parts.number : undefined;
}

/** Of a policy: a part of subjects, of paths and of its versions' names, so that it looks like none of these. */
export function isPolicyName(name: string): boolean {
  return /^[A-Za-z0-9_-]{1,64}$/.test(name) && versionParts(name) === undefined;
}
