// What commands read from the environment.
import { baseSettings, blobSettings, installationSettings, setting, wireSettings } from '@backtalk/kit';

export const cliSettings = {
  apiKey: setting.string('BACKTALK_API_KEY', {
    description: 'Key for the endpoint; none is needed on a loopback address without keys.',
    default: 'none',
    secret: true,
  }),
  data: setting.path('BACKTALK_DATA', { description: 'Folder of the running machine.', default: '.backtalk' }),
};

/** Where an installation without a data folder is: a cluster. */
export const clusterSettings = {
  natsUrl: setting.string('BACKTALK_NATS_URL', {
    description: "The cluster's broker; where it is set, commands talk to the cluster and not to a data folder.",
    default: '',
  }),
  natsUser: setting.string('BACKTALK_NATS_USER', {
    description: 'User at the broker: cli, or admin for streams and backup.',
    default: 'cli',
  }),
  natsPassword: setting.string('BACKTALK_NATS_PASSWORD', {
    description: "That user's password.",
    default: '',
    secret: true,
  }),
  endpoint: setting.url('BACKTALK_ENDPOINT', {
    description: "The cluster's endpoint, with /v1.",
    default: 'http://127.0.0.1:30000/v1',
  }),
  engineUrl: setting.url('BACKTALK_ENGINE_URL', {
    description: 'An engine of the cluster, without /v1, for simulate and judge eval.',
    default: 'http://127.0.0.1:30030',
  }),
  engineKey: setting.string('BACKTALK_ENGINE_KEY', {
    description: "That engine's API key; empty where it asks for none.",
    default: '',
    secret: true,
  }),
  policy: setting.string('BACKTALK_POLICY', {
    description: 'The policy that commands are about.',
    default: 'backtalk',
  }),
  policies: setting.list('BACKTALK_POLICIES', {
    description: 'All policies of the cluster, of which `status` and `doctor` tell; empty: BACKTALK_POLICY alone.',
    default: '',
  }),
  keysSecret: setting.string('BACKTALK_KEYS_FROM', {
    description: "The Kubernetes Secret that the gateway reads its keys from; empty: they are in the broker's bucket.",
    default: '',
  }),
  baseModel: setting.string('BACKTALK_BASE_MODEL', {
    description: "The base model's name at the engine.",
    default: 'smollm2-135m-wishes',
  }),
  ...blobSettings,
  ...wireSettings,
  cliToPublisher: baseSettings.cliToPublisher,
};

export const streamSettings = {
  profile: installationSettings.profile,
  replicas: setting.oneOf('BACKTALK_STREAM_REPLICAS', ['1', '3', '5'], {
    description: 'Copies of every stream and bucket.',
    default: '1',
  }),
  turnsAgeMsMax: setting.durationMs('BACKTALK_TURNS_AGE_MAX', {
    description: 'How long turns are kept.',
    default: '720h',
    min: 60_000,
  }),
  turnsBytesMax: setting.integer('BACKTALK_TURNS_BYTES_MAX', {
    description: 'The most that the log of turns may hold, with the payloads beside it, bytes.',
    default: 8 * 1024 ** 3,
    min: 1024 ** 2,
  }),
  blobsBytesMax: setting.integer('BACKTALK_BLOBS_BYTES_MAX', {
    description: "The most that the broker's object store may hold, bytes; 0: what the broker has room for.",
    default: 0,
    min: 0,
  }),
};

export const hashSettings = {
  hashSecret: setting.optional(
    setting.string('BACKTALK_HASH_SECRET', {
      description:
        "`forget`, `turns trim`: the services' key of the hashes that stand for tenants and users, to find them by name.",
      min: 32,
      secret: true,
    }),
  ),
};

export const keySettings = {
  key: setting.optional(
    setting.string('BACKTALK_NEW_KEY', {
      description: 'Key that `keys add` adds, in place of a new one.',
      min: 16,
      max: 512,
      secret: true,
    }),
  ),
};
