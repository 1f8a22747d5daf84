// Is this installation fit for what its profile promises? In: the profile and what the service is connected to. Out:
// nothing, a line in the log (trial), or a start refused in one line that says what to do (production). A part that is down
// cannot be asked: that is warned of, and the service's own waiting goes on as it does without this.
import { type Broker, oldestServer } from '../broker/connect.js';
import type { Profile } from '../config/base-settings.js';
import type { TlsFiles } from '../config/wire-security.js';
import type { BlobPlace } from '../config/setting.js';
import { asBacktalkError, defineErrors } from '../errors/backtalk-error.js';
import { brokerProblems, syncProblems } from './broker-problems.js';
import type { valkeyProblems } from './valkey-problems.js';

/** The values of `installationSettings`, and `valkeyUrl` of those services that use Valkey. */
export interface InstallationConfig {
  readonly profile: Profile;
  readonly natsMonitorUrl: string;
  readonly blobStore: BlobPlace;
  readonly valkeyUrl?: string;
}

/** Bounds that tests move. */
export interface Oldest {
  readonly broker: string;
  readonly redis: string;
}

/** Redis 6.2 is the oldest that the job queue is made for; every Valkey is newer. */
const oldestFit: Oldest = { broker: oldestServer, redis: '6.2.0' };

export async function checkInstallation(
  config: InstallationConfig,
  broker: Broker,
  tls?: TlsFiles,
  oldest: Oldest = oldestFit,
): Promise<void> {
  if (config.profile === 'laptop') return;
  const { valkeyUrl, natsMonitorUrl, blobStore } = config;
  const looks = [
    () => brokerProblems(broker, blobStore.kind === 'jetstream', oldest.broker),
    () => syncProblems(natsMonitorUrl, broker.logger),
    ...(valkeyUrl === undefined ? [] : [() => problemsOfValkey(valkeyUrl, tls, broker.logger, oldest.redis)]),
  ];
  const found = looks.map((look) =>
    look().catch((thrown: unknown): string[] => {
      const error = asBacktalkError(thrown);
      if (error.retry === 'stop') throw error;
      broker.logger.warn('installation_not_checked', { error });
      return [];
    }),
  );
  const problems = (await Promise.all(found)).flat();
  if (problems.length === 0) return;
  if (config.profile === 'production') throw installationErrors.installationUnfit({ problems });
  // What a trial is: no alarm, and every service says it.
  broker.logger.info('installation_weak', { problems });
}

/** Its client is loaded by those alone who are connected to Valkey. */
async function problemsOfValkey(...asked: Parameters<typeof valkeyProblems>): Promise<string[]> {
  const look = await import('./valkey-problems.js');
  return look.valkeyProblems(...asked);
}

const installationErrors = defineErrors('installation', {
  installationUnfit: {
    code: 'installation_unfit',
    retry: 'stop',
    message: (p: { problems: readonly string[] }) =>
      `BACKTALK_PROFILE is production, and this installation may lose what it was given: ${p.problems.join('; ')}.`,
  },
});
