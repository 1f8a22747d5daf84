// The settings that services share, so that one variable means one thing everywhere. A service's config.ts picks
// the ones that it uses.
import { hostname } from 'node:os';
import { setting } from './setting.js';

export const logLevels = ['debug', 'info', 'warn', 'error', 'silent'] as const;
export type LogLevel = (typeof logLevels)[number];

/** How strictly an installation is looked at when a service starts. */
export const profiles = ['laptop', 'trial', 'production'] as const;
export type Profile = (typeof profiles)[number];

export const baseSettings = {
  natsUrl: setting.urls('BACKTALK_NATS_URL', {
    description: 'Where the broker listens; several servers of a cluster with commas between.',
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
    description: 'Where Valkey or Redis listens, with its password: redis://:password@host:port.',
    default: 'redis://127.0.0.1:30042',
    shownDefault: 'redis://127.0.0.1:30042',
    secret: true,
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
    description: 'How long the broker waits for an ack before it gives a fact to another instance.',
    default: '30s',
    min: 500,
  }),
  instance: setting.name('BACKTALK_INSTANCE', {
    description: 'Name of this process among its replicas; part of lease keys.',
    default: hostname()
      .replaceAll(/[^A-Za-z0-9_-]/g, '-')
      .slice(0, 63),
    shownDefault: 'host name',
  }),
  policies: setting.policies('BACKTALK_POLICIES', {
    description: 'Policies by name, with commas between: each is the alias of a model that is served and trained.',
    default: 'backtalk',
  }),
  engineHosts: setting.list('BACKTALK_ENGINE_HOSTS', {
    description:
      'Hosts where engines may be that loaders lease: names (and what they resolve to), addresses, *.domain, or * for any. Prompts and the engines’ key go nowhere else.',
    default: ['127.0.0.1', 'localhost', '[::1]'],
    shownDefault: '127.0.0.1,localhost,[::1]',
  }),
  // Which model the judge asks: one answer for the judge, and for the trainer, which asks the same model.
  judgeBackend: setting.oneOf('BACKTALK_JUDGE_BACKEND', ['words', 'free', 'rules'], {
    description:
      "What judges: words (a person's words and tools' fields, without a model), free (a model votes in words; the trainer asks it about wishes too), rules (tools' fields and feedback).",
    default: 'words',
  }),
  judgeUrls: setting.urlList('BACKTALK_JUDGE_URL', {
    description:
      'Base URLs of judge engines without /v1, with commas between, whose names are looked up again and again; empty = engines found by their leases.',
    default: [],
  }),
  judgeDialect: setting.oneOf('BACKTALK_JUDGE_DIALECT', ['vllm', 'builtin', 'openai'], {
    description: 'What the engines of BACKTALK_JUDGE_URL speak.',
    default: 'builtin',
  }),
  judgeModel: setting.string('BACKTALK_JUDGE_MODEL', {
    description: "Model that votes; empty = the engine's base model.",
    default: '',
  }),
  // For `wireSecurity`: a service picks those that it calls with, and those that it is called with.
  publisherToGateway: setting.string('BACKTALK_PUBLISHER_TO_GATEWAY_TOKEN', {
    description: "Secret of the publisher's calls to gateways, for these two alone. Empty: none is asked for.",
    default: '',
    secret: true,
  }),
  publisherToLoader: setting.string('BACKTALK_PUBLISHER_TO_LOADER_TOKEN', {
    description: "Secret of the publisher's calls to loaders, for these two alone. Empty: none is asked for.",
    default: '',
    secret: true,
  }),
  cliToPublisher: setting.string('BACKTALK_CLI_TO_PUBLISHER_TOKEN', {
    description: "Secret of operators' commands to the publisher, for these two alone. Empty: none is asked for.",
    default: '',
    secret: true,
  }),
  trainerToTraining: setting.string('BACKTALK_TRAINER_TO_TRAINING_TOKEN', {
    description: "Secret of the trainer's calls to the training worker, for these two alone. Empty: none is asked for.",
    default: '',
    secret: true,
  }),
};

/** For every process, and read by `run` itself: no service has to know of it. */
export const tracingSettings = {
  otlpEndpoint: setting.optional(
    setting.url('OTEL_EXPORTER_OTLP_ENDPOINT', {
      description: 'Where a collector takes spans over OTLP/HTTP, without /v1/traces; not set: no spans are made.',
    }),
  ),
};

/** How services know each other: one answer for all of them. For `wireSecurity`. */
export const wireSettings = {
  tlsCa: setting.string('BACKTALK_TLS_CA', {
    description:
      'File with the certificate of the authority that all services trust; with the two below, or none of them.',
    default: '',
  }),
  tlsCert: setting.string('BACKTALK_TLS_CERT', {
    description: 'File with the certificate of this process, for gRPC, tls:// and rediss://.',
    default: '',
  }),
  tlsKey: setting.string('BACKTALK_TLS_KEY', {
    description: 'File with the private key of that certificate.',
    default: '',
  }),
};

/** Where blobs lie: one answer for all services. For `openBlobStore`. */
export const blobSettings = {
  blobStore: setting.blobPlace('BACKTALK_BLOB_STORE', {
    description: 'Where large payloads and weights lie: folder:<path>, jetstream, or s3; the same for all services.',
    default: 'folder:.backtalk/blobs',
  }),
  s3Endpoint: setting.string('BACKTALK_S3_ENDPOINT', {
    description: "Address of the S3 server, http://host:port; empty: Amazon's own, by region.",
    default: '',
  }),
  s3Bucket: setting.string('BACKTALK_S3_BUCKET', { description: 'Bucket of the store s3.', default: '' }),
  s3Region: setting.string('BACKTALK_S3_REGION', {
    description: 'Region of the store s3.',
    default: 'us-east-1',
    min: 1,
  }),
  s3AccessKey: setting.string('BACKTALK_S3_ACCESS_KEY', {
    description: "Access key of the store s3; empty: what the pod's role gives.",
    default: '',
    secret: true,
  }),
  s3SecretKey: setting.string('BACKTALK_S3_SECRET_KEY', {
    description: 'Secret key of the store s3.',
    default: '',
    secret: true,
  }),
};

/** What an installation as a whole decides. For `checkInstallation` and `openBlobStore`. */
export const installationSettings = {
  profile: setting.oneOf('BACKTALK_PROFILE', profiles, {
    description:
      'production: the service refuses to start on stores that may lose what they were given; trial: it warns; laptop: it does not look.',
    default: 'laptop',
  }),
  natsMonitorUrl: setting.string('BACKTALK_NATS_MONITOR_URL', {
    description:
      "The broker's monitoring address and any base path, with commas between several; production asks it whether every write is synced. Empty: it is not asked.",
    default: '',
    secret: true,
  }),
  ...blobSettings,
  ...wireSettings,
};
