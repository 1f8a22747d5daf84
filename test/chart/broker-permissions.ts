// What each user may do on the broker, as the chart carries it: the kit's own table, with a place-holder for the policy.
// In: nothing. Out: the text of files/nats-permissions.json.
import { adminUser, brokerServices, permissionsOf } from '@backtalk/kit';

/** Put in the place of the policy's name, which is known only when the chart is rendered. */
const policyPlaceholder = '@policy@';

export interface UserPermissions {
  readonly user: string;
  readonly publish: readonly string[];
  readonly publishDenied: readonly string[];
  readonly subscribe: readonly string[];
}

export function userPermissions(policy: string): UserPermissions[] {
  return [
    { user: adminUser, publish: ['>'], publishDenied: [], subscribe: ['>'] },
    ...brokerServices.map((user) => ({ user, ...permissionsOf(user, [policy]) })),
  ];
}

export function permissionsFile(): string {
  return `${JSON.stringify(userPermissions(policyPlaceholder), null, 2)}\n`;
}
