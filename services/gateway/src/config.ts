// What the gateway reads from its environment.
import { baseSettings, installationSettings, setting, type ConfigOf } from '@backtalk/kit';

const { natsUrl, natsUser, natsPassword, valkeyUrl, healthAddress, logLevel, hashSecret, instance } = baseSettings;
const mebibyte = 1024 * 1024;

const addresses = {
  httpAddress: setting.address('BACKTALK_LISTEN', {
    description: 'Where clients are served. Other addresses than loopback need keys.',
    default: '127.0.0.1:30000',
  }),
  grpcAddress: setting.address('BACKTALK_GRPC_ADDRESS', {
    description: 'Where the publisher calls.',
    default: '127.0.0.1:30020',
  }),
  grpcAdvertised: setting.string('BACKTALK_GRPC_ADVERTISED', {
    description: 'host:port under which others reach BACKTALK_GRPC_ADDRESS, where it differs.',
    default: '',
  }),
};

const serving = {
  policies: baseSettings.policies,
  temperature: setting.number('BACKTALK_TEMPERATURE', {
    description: 'Sampling temperature of requests that name none.',
    default: 0.8,
    min: 0,
    max: 2,
  }),
  showLessons: setting.oneOf('BACKTALK_SHOW_LESSONS', ['off', 'on'], {
    description:
      "Whether the model is shown a person's lessons until it has learned them; X-Backtalk-Lessons on a request decides otherwise.",
    default: 'off',
  }),
  engineKey: setting.string('BACKTALK_ENGINE_KEY', {
    description: 'Key that the engines ask for; empty where they ask for none.',
    default: '',
    secret: true,
  }),
  engineRequestsMax: setting.integer('BACKTALK_ENGINE_REQUESTS_MAX', {
    description: 'Requests that one engine replica answers at once for this gateway; others get the next ones.',
    default: 1024,
    min: 1,
  }),
  answerWaitMs: setting.durationMs('BACKTALK_ANSWER_WAIT', {
    description: 'The longest time that one answer may take.',
    default: '10m',
    min: 100,
  }),
  firstByteWaitMs: setting.durationMs('BACKTALK_FIRST_BYTE_WAIT', {
    description: "The longest time to an answer's first byte.",
    default: '2m',
    min: 100,
  }),
  silenceWaitMs: setting.durationMs('BACKTALK_SILENCE_WAIT', {
    description: 'The longest gap between two pieces of an answer.',
    default: '60s',
    min: 100,
  }),
};

const capture = {
  capture: setting.oneOf('BACKTALK_CAPTURE', ['required', 'best-effort'], {
    description:
      'When turns cannot be stored: required refuses requests, best-effort serves them uncaptured and counts them.',
    default: 'required',
  }),
  storeWaitMs: setting.durationMs('BACKTALK_STORE_WAIT', {
    description: 'How long a finished turn waits for the broker before it goes to the spool.',
    default: '300ms',
    min: 10,
  }),
  lookupWaitMs: setting.durationMs('BACKTALK_LOOKUP_WAIT', {
    description: 'How long a request waits for Valkey before it goes on without.',
    default: '20ms',
    min: 1,
  }),
  indexKeepMs: setting.durationMs('BACKTALK_INDEX_KEEP', {
    description: 'How long an answer can be recognised in a later request.',
    default: '48h',
    min: 1000,
  }),
  tenantBytesPerDay: setting.integer('BACKTALK_CAPTURE_BYTES_PER_DAY', {
    description: 'What the log takes of one tenant a day (UTC), bytes; of one key half. Chat goes on beyond it.',
    // Thirty such days, as long as turns are kept, fit the smallest log that is set up: 4 GB.
    default: 128 * mebibyte,
    min: 0,
  }),
  spoolDirectory: setting.path('BACKTALK_SPOOL_DIR', {
    description: 'Folder for turns that the broker did not take in time.',
    default: '.backtalk/spool',
  }),
  spoolBytesMax: setting.integer('BACKTALK_SPOOL_BYTES_MAX', {
    description: 'The most that the spool may hold, bytes.',
    default: 512 * mebibyte,
    min: mebibyte,
  }),
};

const bounds = {
  keysFile: setting.path('BACKTALK_KEYS_FILE', {
    description: 'JSON file of hashed keys, which need not exist yet; without it keys come from the bucket `keys`.',
    default: '',
  }),
  bodyBytesMax: setting.integer('BACKTALK_BODY_BYTES_MAX', {
    description:
      'The largest request body, bytes: at most 8 MiB, as readers of the log take, and a twelfth of the heap.',
    // It is read beside the event loop, which counts its members as it comes, and sends and stores its bytes: 5 to 10 ms a mebibyte.
    default: 8 * mebibyte,
    min: 1024,
    max: 8 * mebibyte,
  }),
  messagesMax: setting.integer('BACKTALK_MESSAGES_MAX', {
    description: 'The most messages that one request may hold.',
    default: 2000,
    min: 1,
  }),
  headersWaitMs: setting.durationMs('BACKTALK_HEADERS_WAIT', {
    description: 'How long the headers of a request may take.',
    default: '10s',
    min: 100,
  }),
  bodyWaitMs: setting.durationMs('BACKTALK_BODY_WAIT', {
    description: 'How long a whole request may take to arrive.',
    default: '30s',
    min: 100,
  }),
  readerWaitMs: setting.durationMs('BACKTALK_READER_WAIT', {
    description:
      'How long a client may read nothing, with a full buffer, before it is cut; for the whole of an answer it has twelve times that.',
    default: '10s',
    min: 100,
  }),
  requestsMax: setting.integer('BACKTALK_REQUESTS_MAX', {
    description: 'Requests in flight at once, of all keys.',
    default: 2000,
    min: 1,
  }),
  keyRequestsMax: setting.integer('BACKTALK_KEY_REQUESTS_MAX', {
    description: 'Requests in flight at once for a key that has no limit of its own.',
    default: 1000,
    min: 1,
  }),
  stopWaitMs: setting.durationMs('BACKTALK_STOP_WAIT', {
    description: 'How long answers in flight may go on when the gateway stops.',
    default: '8s',
    min: 0,
  }),
};

export const gatewaySettings = {
  natsUrl,
  natsUser,
  natsPassword,
  valkeyUrl,
  healthAddress,
  logLevel,
  hashSecret,
  instance,
  ...addresses,
  ...serving,
  ...capture,
  ...installationSettings,
  engineHosts: baseSettings.engineHosts,
  publisherToGateway: baseSettings.publisherToGateway,
  ...bounds,
};

export type GatewayConfig = ConfigOf<typeof gatewaySettings>;
