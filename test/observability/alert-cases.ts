// For each alert a story in which it fires, and one in which it does not. In the notation of promtool: `0+1x60` is 0 and then
// one more each minute, for an hour.

type Labels = Readonly<Record<string, string>>;

export interface AlertCase {
  readonly alert: string;
  /** Series that make it fire, and the labels of what fires. */
  readonly fires: Readonly<Record<string, string>>;
  readonly at: string;
  /** Minutes from one value to the next, 1 if nothing is said: stories of days take larger steps. */
  readonly minutes?: number;
  readonly labels: Labels;
  /** Other series that make the same fire. */
  readonly firesToo?: Readonly<Record<string, string>>;
  /** Series that differ from those by what should keep it quiet. */
  readonly quiet: Readonly<Record<string, string>>;
  /** Other series that keep it quiet. */
  readonly quietToo?: Readonly<Record<string, string>>;
}

/** The label that tells releases apart; a machine without a cluster has none, and the stories hold there as well. */
export const releaseLabel = ', release="r"';
const ns = `namespace="n"${releaseLabel}`;
const n = { namespace: 'n', release: 'r' };
const chat = `backtalk_gateway_requests_total{${ns}, route="chat_completions", status=`;
const stored = `backtalk_gateway_turns_stored_total{${ns}, where="nowhere"}`;
const firstToken = (le: string) => `backtalk_gateway_first_token_seconds_bucket{${ns}, le="${le}"}`;
const turns = `backtalk_gateway_turns_total{${ns}, trainable="false"}`;
const why = (reason: string) => `backtalk_gateway_untrainable_total{${ns}, reason="${reason}"}`;
const oldest = (fact: string) => `backtalk_judge_facts_oldest_age_seconds{${ns}, fact="${fact}"}`;
const pending = `backtalk_collector_facts_pending{${ns}, fact="turnOpened"}`;
const dead = (outcome: string) =>
  `backtalk_judge_facts_handled_total{${ns}, fact="turnContinued", outcome="${outcome}"}`;
const judged = `backtalk_judge_turns_judged_total{${ns}, source="votes"}`;
const withoutVotes = (reason: string) => `backtalk_judge_turns_without_votes_total{${ns}, reason="${reason}"}`;
const vote = (result: string) => `backtalk_judge_votes_cast_total{${ns}, result="${result}"}`;
const engines = `backtalk_gateway_engines_ready{${ns}}`;
const fence = (instance: string) => `backtalk_gateway_routes_fence{${ns}, policy="p", instance="${instance}"}`;
const measured = (name: string) => `backtalk_trainer_step_measurement{${ns}, policy="p", name="${name}"}`;
const taken = (kind: string) => `backtalk_trainer_samples_taken_total{${ns}, policy="p", kind="${kind}"}`;
const dropped = (reason: string) => `backtalk_trainer_samples_dropped_total{${ns}, policy="p", reason="${reason}"}`;
const undecided = `backtalk_publisher_facts_oldest_age_seconds{${ns}, fact="weightsTrained", policy="p"}`;
const policy = { namespace: 'n', release: 'r', policy: 'p' };

function figure(alert: string, name: string, bad: string, good: string): AlertCase {
  return {
    alert,
    at: '10m',
    labels: { ...policy, name },
    fires: { [measured(name)]: bad },
    quiet: { [measured(name)]: good },
  };
}

/** The same in another process, which was started in the place of the one before. */
const inProcess = (series: string, instance: string) => series.replace('}', `, instance="${instance}"}`);

/** A figure that is held against its own past: a day of one value, then another, in the same process or in a new one. */
function drift(alert: string, name: string, bad: string, good: string): AlertCase {
  const [before = '', after = ''] = bad.split(' ');
  return {
    alert,
    at: '26h',
    minutes: 15,
    labels: { ...policy, name },
    fires: { [measured(name)]: bad },
    firesToo: {
      [inProcess(measured(name), 'one')]: before,
      [inProcess(measured(name), 'other')]: `_${before.slice(before.indexOf('x'))} ${after}`,
    },
    quiet: { [measured(name)]: good },
  };
}

function gauge(alert: string, series: string, bad: string, good: string, labels: Labels = n): AlertCase {
  return { alert, at: '30m', labels, fires: { [series]: bad }, quiet: { [series]: good } };
}

function counter(alert: string, series: string, labels: Record<string, string> = n): AlertCase {
  return { alert, at: '10m', labels, fires: { [series]: '0x5 1x10' }, quiet: { [series]: '3x20' } };
}

/** As `counter`; and a process that counts before it is first looked at has counted as well, until an hour has passed. */
function startingCounter(alert: string, series: string, labels: Record<string, string> = n): AlertCase {
  return {
    alert,
    at: '70m',
    labels,
    fires: { [series]: '0x65 1x10' },
    firesToo: { [series]: '_x65 1x10' },
    quiet: { [series]: '3x80' },
  };
}

const present = (metric: string, job: string) => `${metric}{${ns}, job="${job}"}`;
/** Every part is scraped but the collector, of which nothing is told here. */
function withEveryPart(collector: Readonly<Record<string, string>>): Record<string, string> {
  const others = {
    gateway: 'backtalk_gateway_engines_ready',
    judge: 'backtalk_judge_engines_known',
    trainer: 'backtalk_trainer_leader_active',
    publisher: 'backtalk_publisher_leading',
    training: 'backtalk_training_busy_steps',
    loader: 'backtalk_loader_engine_ready',
    'engine-serving': 'vllm:num_requests_running',
  };
  const told = Object.entries(others).map(([job, metric]) => [present(metric, job), '1x60']);
  return { ...(Object.fromEntries(told) as Record<string, string>), ...collector };
}
const judgedOver = (of: string) =>
  `backtalk_judge_turns_judged_total{${ns}, policy="${of}", source="votes", verdict="1"}`;
const pausedElsewhere = `backtalk_trainer_ledger_state{${ns}, policy="another", state="paused"}`;
const served = (of: string) => `backtalk_publisher_versions_total{${ns}, policy="${of}", stage="stable"}`;
const ledger = (state: string) => `backtalk_trainer_ledger_state{${ns}, policy="p", state="${state}"}`;
const abandoned = (reason: string) => `backtalk_trainer_batches_abandoned_total{${ns}, policy="p", reason="${reason}"}`;
/** The other release goes on, and says nothing about this one. */
const anotherGateway = 'backtalk_gateway_engines_ready{namespace="n", release="another", job="gateway"}';

const turnsBytes = (what: string) => `backtalk_collector_${what}{${ns}, stream="TURNS"}`;
const brokerBytes = (what: string) => `backtalk_collector_${what}{${ns}, kind="storage"}`;
const spoolBytes = (what: string, pod: string) => `backtalk_gateway_${what}{${ns}, pod="${pod}"}`;
const certificate = (service: string) => `backtalk_${service}_certificate_expiry_timestamp_seconds{${ns}}`;
const valkeyBytes = (what: string) => `backtalk_collector_${what}{${ns}}`;

export const alertCases: readonly AlertCase[] = [
  gauge('BacktalkStoreAway', `backtalk_collector_store_up{${ns}, store="broker"}`, '1 0x40', '1x10 0 1x40', {
    ...n,
    store: 'broker',
  }),
  {
    alert: 'BacktalkStreamNearlyFull',
    at: '30m',
    labels: { ...n, stream: 'TURNS' },
    fires: { [turnsBytes('stream_bytes')]: '750x40', [turnsBytes('stream_bytes_max')]: '1000x40' },
    quiet: {
      [turnsBytes('stream_bytes')]: '650x40',
      [turnsBytes('stream_bytes_max')]: '1000x40',
      // It has no bound, and is one of those that the broker's own alert counts.
      [`backtalk_collector_stream_bytes{${ns}, stream="WEIGHTS"}`]: '1000000x40',
    },
  },
  {
    alert: 'BacktalkBrokerNearlyFull',
    at: '30m',
    labels: { ...n, kind: 'storage' },
    fires: { [brokerBytes('broker_bytes')]: '850x40', [brokerBytes('broker_bytes_max')]: '1000x40' },
    firesToo: { [brokerBytes('broker_bytes')]: '0x10 850x30', [brokerBytes('broker_bytes_max')]: '1000x40' },
    quiet: { [brokerBytes('broker_bytes')]: '850x40', [brokerBytes('broker_bytes_max')]: '0x40' },
  },
  {
    alert: 'BacktalkValkeyNearlyFull',
    at: '30m',
    labels: n,
    fires: { [valkeyBytes('valkey_bytes')]: '850x40', [valkeyBytes('valkey_bytes_max')]: '1000x40' },
    quiet: { [valkeyBytes('valkey_bytes')]: '850x40', [valkeyBytes('valkey_bytes_max')]: '0x40' },
  },
  // Time begins at 0 here, and half an hour has passed.
  gauge('BacktalkCertificateExpiring', certificate('judge'), '1210000x40', '1212000x40'),
  {
    alert: 'BacktalkGatewayGone',
    at: '60m',
    labels: n,
    fires: { [present('backtalk_gateway_engines_ready', 'gateway')]: '1x10 stale', [anotherGateway]: '1x90' },
    quiet: { [present('backtalk_gateway_engines_ready', 'gateway')]: '1x10 _x5 1x80' },
  },
  {
    alert: 'BacktalkComponentGone',
    at: '60m',
    labels: { ...n, job: 'collector' },
    fires: {
      [present('backtalk_collector_sessions_open', 'collector')]: '3x10 stale',
      [present('backtalk_judge_engines_known', 'judge')]: '1x90',
    },
    quiet: {
      [present('backtalk_collector_sessions_open', 'collector')]: '3x10 stale 3x80',
      [present('vllm:num_requests_running', 'engine-serving')]: '1x90',
      'vllm:num_requests_running{namespace="n", job="of another product"}': '1x10 stale',
    },
  },
  {
    alert: 'BacktalkComponentMissing',
    at: '40m',
    labels: { job: 'collector' },
    fires: withEveryPart({}),
    quiet: withEveryPart({ [present('backtalk_collector_sessions_open', 'collector')]: '3x10 stale' }),
  },
  {
    alert: 'BacktalkNothingLearned',
    at: '8h',
    minutes: 15,
    labels: policy,
    // Another policy that learns says nothing about this one.
    fires: {
      [judgedOver('p')]: '0+15x40',
      [served('p')]: '0x2 1x40',
      [served('another')]: '0+1x40',
      [pausedElsewhere]: '1x40',
    },
    quiet: { [judgedOver('p')]: '0+15x40', [served('p')]: '0x20 1x20', [served('another')]: '0x40' },
  },
  startingCounter('BacktalkSpoolUnreadable', `backtalk_gateway_spool_unreadable_total{${ns}}`),
  gauge('BacktalkSpoolDiskFailed', `backtalk_gateway_spool_disk_failed{${ns}}`, '1x40', '1x20 0x20'),
  counter('BacktalkTurnsCapped', `backtalk_gateway_turns_capped_total{${ns}, of="key"}`),
  counter('BacktalkPromptsGivenUp', `backtalk_gateway_prompts_given_up_total{${ns}}`),
  {
    alert: 'BacktalkBatchAbandoned',
    at: '10m',
    labels: policy,
    fires: { [abandoned('step_failed')]: '0x5 1x10' },
    firesToo: { [abandoned('step_failed')]: '_x5 1x10' },
    quiet: { [abandoned('abandoned')]: '0x5 1x10' },
  },
  {
    alert: 'BacktalkGatewayErrors',
    at: '15m',
    labels: n,
    fires: { [`${chat}"200"}`]: '0+90x20', [`${chat}"503"}`]: '0+10x20' },
    quiet: { [`${chat}"200"}`]: '0+1x20', [`${chat}"503"}`]: '0+1x20' },
  },
  gauge('BacktalkNoEngine', engines, '0x40', '1x40'),
  {
    alert: 'BacktalkFirstTokenSlow',
    at: '30m',
    labels: n,
    fires: { [firstToken('10')]: '0+50x40', [firstToken('30')]: '0+100x40', [firstToken('+Inf')]: '0+100x40' },
    quiet: { [firstToken('10')]: '0+99x40', [firstToken('30')]: '0+100x40', [firstToken('+Inf')]: '0+100x40' },
  },
  counter('BacktalkTurnsNotStored', stored),
  gauge('BacktalkSpooling', `backtalk_gateway_breaker_open{${ns}}`, '1x40', '0x20 1x2 0x20'),
  {
    alert: 'BacktalkSpoolNearlyFull',
    at: '30m',
    labels: n,
    fires: {
      [spoolBytes('spool_bytes', 'a')]: '0x10 750x30',
      [spoolBytes('spool_bytes_max', 'a')]: '1000x40',
      [spoolBytes('spool_bytes', 'b')]: '0x40',
      [spoolBytes('spool_bytes_max', 'b')]: '1000x40',
    },
    // As much in all, and no spool is nearly full.
    quiet: {
      [spoolBytes('spool_bytes', 'a')]: '650x40',
      [spoolBytes('spool_bytes_max', 'a')]: '1000x40',
      [spoolBytes('spool_bytes', 'b')]: '650x40',
      [spoolBytes('spool_bytes_max', 'b')]: '1000x40',
    },
  },
  startingCounter('BacktalkSpoolRejected', `backtalk_gateway_spool_rejected_total{${ns}}`),
  gauge(
    'BacktalkWithoutValkey',
    `backtalk_gateway_valkey_skipped_total{${ns}, purpose="places"}`,
    '0+120x40',
    '0+6x40',
  ),
  {
    alert: 'BacktalkNothingTrainable',
    at: '80m',
    labels: n,
    fires: { [turns]: '0+10x100', [why('no_token_ids')]: '0+9x100' },
    // Three reasons of the same turns are one reason for each of them.
    quiet: {
      [turns]: '0+10x100',
      [why('opted_out')]: '0+9x100',
      [why('no_token_ids')]: '0+3x100',
      [why('no_logprobs')]: '0+3x100',
      [why('sampler_not_plain')]: '0+3x100',
    },
    // Two turns in a night are no rule.
    quietToo: { [turns]: '0x49 1x14 2x40', [why('no_token_ids')]: '0x49 1x14 2x40' },
  },
  {
    alert: 'BacktalkLinkingBehind',
    at: '40m',
    labels: n,
    fires: { [pending]: '2000+10x60' },
    quiet: { [pending]: '9000-100x60' },
  },
  {
    alert: 'BacktalkFactStuck',
    at: '30m',
    labels: { ...n, fact: 'turnContinued' },
    fires: { [oldest('turnContinued')]: '0+60x40' },
    // An operator's askings wait for all that people said.
    quiet: { [oldest('turnContinued')]: '60x40', [oldest('judgementAsked')]: '0+60x40' },
  },
  {
    alert: 'BacktalkDeadLetters',
    at: '10m',
    labels: n,
    fires: { [dead('dead')]: '0x5 1x10' },
    firesToo: { [dead('dead')]: '_x5 1x10' },
    quiet: { [dead('retried')]: '0x5 1x10' },
  },
  gauge('BacktalkJudgeNoEngine', `backtalk_judge_engines_known{${ns}}`, '0x40', '2x40'),
  gauge('BacktalkVotesWaiting', `backtalk_judge_votes_oldest_age_seconds{${ns}}`, '180x40', '90x40'),
  {
    alert: 'BacktalkJudgeBehind',
    at: '40m',
    labels: n,
    fires: { [judged]: '0+10x60', [withoutVotes('behind')]: '0+5x60' },
    quiet: { [judged]: '0+10x60', [withoutVotes('behind')]: '0+1x60', [withoutVotes('share')]: '0+9x60' },
    quietToo: { [judged]: '0x20 1x12 2x40', [withoutVotes('behind')]: '0x20 1x12 2x40' },
  },
  {
    alert: 'BacktalkVotesInvalid',
    at: '40m',
    labels: n,
    fires: { [vote('1')]: '0+5x60', [vote('timeout')]: '0+5x60' },
    quiet: { [vote('1')]: '0+9x60', [vote('timeout')]: '0+1x60' },
    quietToo: { [vote('1')]: '0x14 1x12 2x40', [vote('timeout')]: '0x20 1x12 2x40' },
  },
  gauge('BacktalkVotesUntrusted', `backtalk_judge_votes_trusted{${ns}}`, '1x5 0x40', '0x4 1x40'),
  {
    alert: 'BacktalkNoTrainer',
    at: '20m',
    labels: n,
    fires: { [engines]: '1x40' },
    quiet: { [engines]: '1x40', [`backtalk_trainer_leader_active{${ns}}`]: '1x40' },
  },
  {
    alert: 'BacktalkLedgerTroubled',
    at: '30m',
    labels: policy,
    fires: { [ledger('troubled')]: '1x40' },
    // Every second look falls into a new try.
    firesToo: {
      [ledger('troubled')]: '0 1 0 1 0 1 0 1 0 1 0 1 0 1 0 1 0 1 0 1 0 1 0 1 0 1 0 1 0 1 0 1 0 1 0 1 0 1 0 1',
    },
    quiet: { [ledger('troubled')]: '0x20 1 0x20' },
  },
  gauge('BacktalkTrainingHeld', ledger('held'), '0x5 1x40', '1x5 0x40', policy),
  {
    alert: 'BacktalkStepLong',
    at: '90m',
    labels: policy,
    fires: { [`backtalk_trainer_batch_open_timestamp_seconds{${ns}, policy="p"}`]: '60x100' },
    quiet: {
      [`backtalk_trainer_batch_open_timestamp_seconds{${ns}, policy="p"}`]: '60x100',
      [`backtalk_trainer_ledger_state{${ns}, policy="p", state="queued"}`]: '1x100',
      [`backtalk_trainer_batch_open_timestamp_seconds{${ns}, policy="q"}`]: '0x100',
    },
  },
  figure('BacktalkRatioOff', 'v_mean', '1.1x20', '1.01x20'),
  figure('BacktalkFewSamplesCount', 'ess', '0.2x20', '0.9x20'),
  figure('BacktalkLogprobsBiased', 'logprob_bias', '-0.2x20', '0.01x20'),
  drift('BacktalkLogprobsDrift', 'logprob_difference', '0.01x102 0.05x8', '0.01x110'),
  figure('BacktalkTokensMasked', 'masked_share', '0.3x20', '0.05x20'),
  {
    alert: 'BacktalkTemplateMismatch',
    at: '40m',
    labels: policy,
    fires: { [taken('effective')]: '0+8x60', [taken('anchor')]: '0+2x60', [dropped('template_mismatch')]: '0+1x60' },
    quiet: {
      [taken('effective')]: '0+80x60',
      [taken('anchor')]: '0+20x60',
      [dropped('template_mismatch')]: '0+1x60',
      [dropped('stale')]: '0+20x60',
    },
  },
  drift('BacktalkEntropyFalls', 'entropy', '2x102 0.8x8', '2x102 1.8x8'),
  {
    alert: 'BacktalkNoPublisher',
    at: '20m',
    labels: n,
    fires: { [`backtalk_publisher_leading{${ns}}`]: '0x40' },
    quiet: {
      [`backtalk_publisher_leading{${ns}, instance="a"}`]: '0x40',
      [`backtalk_publisher_leading{${ns}, instance="b"}`]: '1x40',
    },
  },
  gauge('BacktalkVersionUndecided', undecided, '0+60x40', '10x40', policy),
  startingCounter(
    'BacktalkVersionBurned',
    `backtalk_publisher_versions_total{${ns}, policy="p", stage="burned"}`,
    policy,
  ),
  {
    alert: 'BacktalkGatewayBehind',
    at: '20m',
    labels: policy,
    fires: { [fence('a')]: '4x10 7x30', [fence('b')]: '4x40' },
    quiet: {
      [fence('a')]: '4x10 7x30',
      [fence('b')]: '4x11 7x30',
      'backtalk_gateway_routes_fence{namespace="n", release="another", policy="p", instance="c"}': '90x40',
    },
  },
  gauge('BacktalkEngineNotReady', `backtalk_loader_engine_ready{${ns}, instance="a"}`, '0x40', '0x14 1x40', {
    ...n,
    instance: 'a',
  }),
  {
    alert: 'BacktalkEngineRestarts',
    at: '20m',
    labels: { ...n, instance: 'a' },
    fires: { [`backtalk_loader_engine_restarts_total{${ns}, instance="a"}`]: '0x3 1 2x2 4x30' },
    quiet: { [`backtalk_loader_engine_restarts_total{${ns}, instance="a"}`]: '0x3 1x40' },
  },
];
