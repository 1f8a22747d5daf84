// What the loader reads from its environment.
import { engineDialects } from '@backtalk/dialects';
import { baseSettings, installationSettings, setting, type ConfigOf } from '@backtalk/kit';

const { natsUrl, natsUser, natsPassword, healthAddress, logLevel, instance } = baseSettings;

export const loaderSettings = {
  natsUrl,
  natsUser,
  natsPassword,
  healthAddress,
  logLevel,
  instance,
  policies: baseSettings.policies,
  baseModel: setting.string('BACKTALK_BASE_MODEL', {
    description: "The policy's base model, by the name that engines serve it under; another is refused. Empty: any.",
    default: '',
  }),
  contextMin: setting.integer('BACKTALK_CONTEXT_MIN', {
    description: 'Tokens of context that the policy needs; an engine with fewer is refused. 0: any.',
    default: 0,
    min: 0,
  }),
  loraRank: setting.integer('BACKTALK_LORA_RANK', {
    description:
      'Rank of the adapters that the policy trains; an engine that takes none of it is refused. 0, or BACKTALK_MODEL_DIR not set: not tried.',
    default: 0,
    min: 0,
  }),
  engineUrl: setting.url('BACKTALK_ENGINE_URL', {
    description: 'The engine beside this loader, without /v1.',
    default: 'http://127.0.0.1:30030',
  }),
  engineDialect: setting.oneOf('BACKTALK_ENGINE_DIALECT', engineDialects, {
    description: 'How the engine is spoken to; the built-in engine speaks vllm.',
    default: 'vllm',
  }),
  engineKey: setting.string('BACKTALK_ENGINE_KEY', {
    description: "The engine's API key; empty where it asks for none.",
    default: '',
    secret: true,
  }),
  enginePools: setting.list('BACKTALK_ENGINE_POOLS', {
    description: 'Pools that the engine belongs to: serving, judge, evaluation.',
    default: ['serving'],
  }),
  engineCheckMs: setting.durationMs('BACKTALK_ENGINE_CHECK', {
    description: 'How often the engine is asked whether it lives and what it holds.',
    default: '1s',
    min: 20,
  }),
  modelDir: setting.string('BACKTALK_MODEL_DIR', {
    description:
      'Folder of the base model; its config.json gives the dimensions that adapters must fit. Empty: adapters are only checked against themselves.',
    default: '',
  }),
  adapterDir: setting.path('BACKTALK_ADAPTER_DIR', {
    description: 'Where adapters are written for the engine; the same path on its side.',
    default: '.backtalk/adapters',
  }),
  ...installationSettings,
  publisherToLoader: baseSettings.publisherToLoader,
  grpcAddress: setting.address('BACKTALK_GRPC_ADDRESS', {
    description: 'Where Prepare, Retire and Watch are served.',
    default: '127.0.0.1:30025',
  }),
  grpcAdvertised: setting.string('BACKTALK_GRPC_ADVERTISED', {
    description: 'host:port under which the publisher reaches that server; empty: as bound.',
    default: '',
  }),
  engineDeadlineMs: setting.durationMs('BACKTALK_ENGINE_DEADLINE', {
    description:
      'The longest one call to the engine may take; the first one with logprobs compiles for up to half a minute.',
    default: '2m',
    min: 100,
  }),
  retireGraceMs: setting.durationMs('BACKTALK_RETIRE_GRACE', {
    description:
      'How long a version stays loaded after it left the load set, if it is not retired sooner: as long as the longest answer, since loaders do not know who reads one.',
    default: '15m',
    min: 0,
  }),
};

export type LoaderConfig = ConfigOf<typeof loaderSettings>;
