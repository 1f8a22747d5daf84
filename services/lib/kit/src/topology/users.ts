// Who may talk to the broker: one user for each service, one for operators' commands, one that may do everything.

export const brokerServices = ['gateway', 'collector', 'judge', 'trainer', 'publisher', 'loader', 'cli'] as const;
export type BrokerService = (typeof brokerServices)[number];

/** Creates streams and buckets; services never use it. */
export const adminUser = 'admin';

export type BrokerUser = BrokerService | typeof adminUser;
export const brokerUsers: readonly BrokerUser[] = [adminUser, ...brokerServices];

/** Replies to a user come under its own prefix, so that no user can listen to another's. */
export function inboxPrefixOf(user: string): string {
  return `_INBOX_${user}`;
}
