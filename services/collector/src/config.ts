// What the collector reads from its environment.
import { baseSettings, installationSettings, setting, settings } from '@backtalk/kit';

const { natsUrl, natsUser, natsPassword, valkeyUrl, healthAddress, logLevel, ackWaitMs, instance } = baseSettings;

const shape = {
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

/** A turn that is forgotten before its session is over could never be continued. */
export const collectorSettings = settings(shape, ({ sessionIdleMs, indexKeepMs }) =>
  indexKeepMs >= sessionIdleMs
    ? []
    : ['BACKTALK_INDEX_KEEP is shorter than BACKTALK_SESSION_IDLE: make it at least as long.'],
);
