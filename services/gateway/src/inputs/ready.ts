// Is this gateway able to answer, and if not, why?
import type { Broker, ReadyCheck } from '@backtalk/kit';
import { chooseVersion } from '../domain/version-choice.js';
import type { Parts } from './parts.js';

export function readyChecks(parts: Parts, broker: Broker): [string, ReadyCheck][] {
  return [
    ['engines', () => engines(parts)],
    ['capture', () => parts.store.canStore || 'turns cannot be stored, and capture is required'],
    ['keys', () => parts.keys.isUsable || 'no key is configured, and the gateway is open to other machines'],
    // The broker may be away for as long as the spool has room.
    ['broker', () => broker.status() === 'up' || parts.store.canStore || 'the broker is away'],
  ];
}

function engines({ config, routes, fleet }: Parts): true | string {
  for (const policy of config.policies) {
    const version = chooseVersion(routes.of(policy), policy, config.hashSecret, 'ready');
    if (fleet.candidates(version).length === 0) return `no engine that is ready holds ${version}`;
  }
  return true;
}
