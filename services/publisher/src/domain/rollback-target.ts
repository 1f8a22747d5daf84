// Where does a rollback lead, now that the chain may have moved since it was asked for?
//
// In: the policy's state and the version that was stable when the operator asked. Out: the step to take; that another
// rollback took it already; or why it is not taken. Pure. It never burns a version that the operator has not seen serve.
import { previousOf, stableOf, type PolicyState } from './policy-state.js';

export type RollbackTarget =
  | { readonly kind: 'step'; readonly to: string }
  /** Somebody else rolled the same version back. */
  | { readonly kind: 'done'; readonly to: string }
  /** Another version became stable meanwhile. */
  | { readonly kind: 'changed'; readonly stable: string }
  | { readonly kind: 'nothing'; readonly stable: string };

export function rollbackTarget(state: PolicyState, from: string): RollbackTarget {
  const stable = stableOf(state);
  if (stable !== from) return state.burned.has(from) ? { kind: 'done', to: stable } : { kind: 'changed', stable };
  const to = previousOf(state);
  return to === '' ? { kind: 'nothing', stable } : { kind: 'step', to };
}
