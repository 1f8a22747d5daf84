// The settings that services share, so that one variable means one thing everywhere. A service's config.ts picks
// the ones that it uses.
import { hostname } from 'node:os';
import { setting } from './setting.js';

export const logLevels = ['debug', 'info', 'warn', 'error', 'silent'] as const;
export type LogLevel = (typeof logLevels)[number];

export const baseSettings = {
  natsUrl: setting.url('BACKTALK_NATS_URL', {
    description: 'Where the broker listens.',
    default: 'nats://127.0.0.1:30040',
  }),
  natsUser: setting.string('BACKTALK_NATS_USER', {
    description: "The service's user at the broker; empty where the broker asks for none.",
    default: '',
  }),
  natsPassword: setting.string('BACKTALK_NATS_PASSWORD', {
    description: "That user's password.",
    default: '',
    secret: true,
  }),
  valkeyUrl: setting.url('BACKTALK_VALKEY_URL', {
    description: 'Where Valkey or Redis listens.',
    default: 'redis://127.0.0.1:30042',
  }),
  healthAddress: setting.address('BACKTALK_HEALTH_ADDRESS', {
    description: 'Where /livez, /readyz and /metrics are served.',
  }),
  logLevel: setting.oneOf('BACKTALK_LOG_LEVEL', logLevels, {
    description: 'The least severe log line that is written.',
    default: 'info',
  }),
  hashSecret: setting.string('BACKTALK_HASH_SECRET', {
    description: 'Key of the hashes that stand for tenants and users in subjects; the same for all services.',
    min: 32,
    secret: true,
  }),
  ackWaitMs: setting.durationMs('BACKTALK_ACK_WAIT', {
    description: 'How long the broker waits for an ack before it gives a fact to somebody else.',
    default: '30s',
    min: 500,
  }),
  instance: setting.string('BACKTALK_INSTANCE', {
    description: 'Name of this process among its replicas; part of lease keys.',
    default: hostname().replaceAll(/[^A-Za-z0-9_-]/g, '-'),
    min: 1,
    max: 63,
  }),
};
