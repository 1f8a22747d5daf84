// What the collector reads from its environment.
import { baseSettings, installationSettings, setting } from '@backtalk/kit';

const { natsUrl, natsUser, natsPassword, valkeyUrl, healthAddress, logLevel, ackWaitMs, instance } = baseSettings;

export const collectorSettings = {
  natsUrl,
  natsUser,
  natsPassword,
  valkeyUrl,
  healthAddress,
  logLevel,
  ackWaitMs,
  instance,
  ...installationSettings,
  sessionIdleMs: setting.durationMs('BACKTALK_SESSION_IDLE', {
    description: 'A session in which nothing was said for so long is over.',
    default: '10m',
    min: 100,
  }),
  indexKeepMs: setting.durationMs('BACKTALK_INDEX_KEEP', {
    description: 'How long an answer can be continued; a request that comes later starts a new session.',
    default: '48h',
    min: 1000,
  }),
};
