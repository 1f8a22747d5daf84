// What a key opens: one record of the bucket `keys`, under the SHA-256 of the key. The key itself is kept nowhere. Pure.
import { z } from 'zod';
import { isPolicyName } from '../identity/weights-version.js';

const limits = z.object({
  requestsPerMinute: z.number().int().positive().optional(),
  tokensPerMinute: z.number().int().positive().optional(),
  concurrency: z.number().int().positive().optional(),
  /** Of turns and feedback that the log takes from this key; the day is UTC's. Beyond it chat goes on, unkept. */
  captureBytesPerDay: z.number().int().nonnegative().optional(),
});

export const keyGrant = z.object({
  tenant: z.string().min(1).default('default'),
  user: z.string().min(1).default('local'),
  train: z.boolean().default(true),
  acceptsUserField: z.boolean().default(false),
  limits: limits.default({}),
  /** The policies that it opens, by their aliases; `policiesOf` says what its absence means. */
  policies: z.array(z.string().refine(isPolicyName, 'a policy is named as in BACKTALK_POLICIES')).min(1).optional(),
});
export type KeyGrant = z.infer<typeof keyGrant>;

export function tenantsOf(grants: Iterable<Pick<KeyGrant, 'tenant'>>): ReadonlySet<string> {
  return new Set(Array.from(grants, ({ tenant }) => tenant));
}

/**
 * Undefined: all of them. Tenants share a policy only where their keys name it: as soon as keys are of several tenants,
 * one that names none opens the policy that bears its tenant's name.
 */
export function policiesOf(
  { tenant, policies }: { readonly tenant: string; readonly policies?: readonly string[] | undefined },
  tenants: ReadonlySet<string>,
): readonly string[] | undefined {
  return policies ?? (tenants.size > 1 ? [tenant] : undefined);
}
