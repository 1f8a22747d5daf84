// Which weights does a request name, and which version of a policy answers its session?
//
// In: the name, the policies that are served here, the routes, and who asks in which session. Out: a version name. All
// gateways agree without talking, because the choice is a keyed hash of key and session against the shares. Pure.
import { baseVersion, keyedHash, versionParts } from '@backtalk/kit';
import type { Routes } from '@backtalk/proto/weights';

export type NamedModel =
  | { readonly kind: 'routed'; readonly policy: string }
  | { readonly kind: 'pinned'; readonly policy: string; readonly version: string };

export function namedModel(name: string, policies: readonly string[]): NamedModel | undefined {
  if (policies.includes(name)) return { kind: 'routed', policy: name };
  const policy = versionParts(name)?.policy;
  return policy !== undefined && policies.includes(policy) ? { kind: 'pinned', policy, version: name } : undefined;
}

export function chooseVersion(routes: Routes | undefined, policy: string, secret: string, who: string): string {
  const shares = routes?.routes.filter((route) => route.share > 0) ?? [];
  const [first] = shares;
  if (first === undefined) return baseVersion(policy);
  if (shares.length === 1) return first.version;
  const total = shares.reduce((sum, route) => sum + route.share, 0);
  // A number in [0, 1) that stays the same for the same text.
  const fraction = parseInt(keyedHash(secret, `${policy}\n${who}`, 12), 16) / 2 ** 48;
  let point = fraction * total;
  for (const route of shares) {
    point -= route.share;
    if (point < 0) return route.version;
  }
  return first.version;
}

/** Routes with a lower fence than those in force are late news. */
export function isNewer(candidate: Routes, current: Routes | undefined): boolean {
  return current === undefined || candidate.fence >= current.fence;
}
