// What the publisher reads from its environment.
import { baseSettings, installationSettings, setting, type ConfigOf } from '@backtalk/kit';
import { probeQuestions } from './domain/behaviour.js';

const { natsUrl, natsUser, natsPassword, healthAddress, logLevel, instance, ackWaitMs } = baseSettings;

export const publisherSettings = {
  natsUrl,
  natsUser,
  natsPassword,
  healthAddress,
  logLevel,
  instance,
  ackWaitMs,
  policies: baseSettings.policies,
  ...installationSettings,
  engineHosts: baseSettings.engineHosts,
  publisherToGateway: baseSettings.publisherToGateway,
  publisherToLoader: baseSettings.publisherToLoader,
  cliToPublisher: baseSettings.cliToPublisher,
  grpcAddress: setting.address('BACKTALK_GRPC_ADDRESS', {
    description: 'Where Rollback and Burn are served.',
    default: '127.0.0.1:30024',
  }),
  grpcAdvertised: setting.string('BACKTALK_GRPC_ADVERTISED', {
    description: 'host:port under which commands reach that server; empty: as bound.',
    default: '',
  }),
  engineKey: setting.string('BACKTALK_ENGINE_KEY', {
    description: "The engines' API key, for scoring probes; empty where they ask for none.",
    default: '',
    secret: true,
  }),
  parityMax: setting.optional(
    setting.number('BACKTALK_PARITY_MAX', {
      description:
        'Largest mean |Δ logprob| per token between trainer and engine. Not set: 0.001 for float32 and 0.06 for bfloat16.',
      min: 0,
    }),
  ),
  driftMax: setting.number('BACKTALK_DRIFT_MAX', {
    description: 'Largest KL on the probes to what the base says, shown the lessons in force or not, nats an answer.',
    default: 20,
    min: 0,
  }),
  behaviourProbes: setting.integer('BACKTALK_BEHAVIOUR_PROBES', {
    description:
      'Questions that a candidate answers before it may serve, beside what serves and the base: none may fail more often. 0: not asked; five failures are the least that refuses.',
    default: 12,
    min: 0,
    max: probeQuestions.length,
  }),
  behaviourTokens: setting.integer('BACKTALK_BEHAVIOUR_TOKENS', {
    description: 'Most tokens of an answer to such a question.',
    default: 24,
    min: 8,
    max: 512,
  }),
  behaviourLevel: setting.number('BACKTALK_BEHAVIOUR_LEVEL', {
    description:
      'A candidate is refused when chance alone would give it so many more failures with a probability below this.',
    default: 0.05,
    min: 0,
    max: 1,
  }),
  casesPerLesson: setting.integer('BACKTALK_CASES_PER_LESSON', {
    description:
      'Turns once corrected, of each learned lesson, that a candidate is asked again before it may serve; others with each version. 0: none.',
    default: 2,
    min: 0,
    max: 8,
  }),
  casesMax: setting.integer('BACKTALK_CASES_MAX', {
    description:
      'Most such turns that one candidate is asked; lessons beyond that have their turn with later versions.',
    default: 8,
    min: 1,
    max: 256,
  }),
  caseTokens: setting.integer('BACKTALK_CASE_TOKENS', {
    description: 'Most tokens of an answer to such a turn.',
    default: 32,
    min: 8,
    max: 512,
  }),
  casesWithinMs: setting.durationMs('BACKTALK_CASES_WITHIN', {
    description: 'How long a candidate is asked such turns; those that are left have their turn with later versions.',
    default: '30s',
    min: 0,
  }),
  caseHeld: setting.number('BACKTALK_CASE_HELD', {
    description:
      'A learned lesson is held from here on: 0 answers as the base that is not shown it, 1 as the base that is. A candidate is refused that falls below it by 0.15 or more from what serves.',
    default: 0.5,
    min: 0,
    max: 1,
  }),
  entropyFactor: setting.number('BACKTALK_ENTROPY_FACTOR', {
    description:
      'A candidate is refused whose answers to those questions have so many times less or more entropy than those of what serves or the base. Ten wishes about form left .44 to 1.04 of the base’s.',
    default: 5,
    min: 1,
  }),
  lengthFactor: setting.number('BACKTALK_LENGTH_FACTOR', {
    description:
      'A candidate is refused whose answers to those questions are so many times shorter or longer than those of what serves.',
    default: 4,
    min: 1,
  }),
  rollbackFactor: setting.number('BACKTALK_ROLLBACK_FACTOR', {
    description:
      'What serves is rolled back when a step measures that it has so many times less or more entropy than the base, on the answers that the step trained on.',
    default: 10,
    min: 1,
  }),
  prepareDeadlineMs: setting.durationMs('BACKTALK_PREPARE_DEADLINE', {
    description: 'How long a loader may take to prepare a version before it is left out of the swap.',
    default: '2m',
    min: 100,
  }),
  gateDeadlineMs: setting.durationMs('BACKTALK_GATE_DEADLINE', {
    description: 'How long an engine may take to score the probes, and again to answer questions.',
    default: '5m',
    min: 100,
  }),
  commitDeadlineMs: setting.durationMs('BACKTALK_COMMIT_DEADLINE', {
    description: 'How long a gateway may take to answer Commit; one that is later reads the routes by itself.',
    default: '2s',
    min: 50,
  }),
  retireEveryMs: setting.durationMs('BACKTALK_RETIRE_EVERY', {
    description: 'How often old versions are looked for that nothing needs any more.',
    default: '2s',
    min: 20,
  }),
  streamMaxMs: setting.durationMs('BACKTALK_STREAM_MAX', {
    description:
      'The longest a stream may last: after that an old version is retired though a gateway cannot be asked.',
    default: '15m',
    min: 0,
  }),
};

export type PublisherConfig = ConfigOf<typeof publisherSettings>;

const parityByDtype: ReadonlyMap<string, number> = new Map([
  ['float32', 1e-3],
  ['bfloat16', 0.06],
]);
const parityOtherwise = 0.06;

/** The bound that goes with what the trainer computed in. */
export function parityMaxFor(config: PublisherConfig, dtype: string): number {
  return config.parityMax ?? parityByDtype.get(dtype) ?? parityOtherwise;
}
