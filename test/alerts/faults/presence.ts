// Processes and stores that are not there.
import { awayFor, type Fault } from '../fault.js';

export const presenceFaults: readonly Fault[] = [
  awayFor('BacktalkGatewayGone', 'gateway'),
  awayFor('BacktalkStoreAway', 'nats', { store: 'broker' }),
  awayFor('BacktalkStoreAway', 'valkey', { store: 'valkey' }),
];
