/**
 * Which weights does the client's `model` name?
 *
 * In: the name, and the policies that are served here. Out: a policy to route, one pinned version of it, or nothing.
 * Pure.
 */
export type NamedModel =
  | { readonly kind: 'routed'; readonly policy: string }
  | { readonly kind: 'pinned'; readonly policy: string; readonly version: string };

export function namedModel(name: string, policies: readonly string[]): NamedModel | undefined {
  if (policies.includes(name)) return { kind: 'routed', policy: name };
  const [, policy, number] = /^(.+)-v(0|[1-9][0-9]{0,14})$/.exec(name) ?? [];
  if (policy === undefined || number === undefined || !policies.includes(policy)) return undefined;
  return { kind: 'pinned', policy, version: name };
}

/** Version 0 of a policy is the base model without an adapter. */
export function baseVersion(policy: string): string {
  return `${policy}-v0`;
}

export function isBaseVersion(version: string): boolean {
  return version.endsWith('-v0');
}
