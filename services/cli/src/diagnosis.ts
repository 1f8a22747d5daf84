// What is commonly set up wrong. In: what was seen of an installation. Out: findings, each with what is wrong and what to do, in
// the order in which they should be mended. It asks for nothing: commands/doctor.ts does.
import type { PartStatus, PolicyStatus } from './commands/status.js';
import type { Metrics } from './prometheus.js';

export interface Finding {
  readonly code: string;
  readonly what: string;
  readonly mend: string;
}

/** Of a running installation, as `status` knows it. */
export interface Loop {
  readonly parts: readonly PartStatus[];
  readonly policies: readonly PolicyStatus[];
  readonly facts: Readonly<Record<string, number>>;
  readonly deadLetters: number;
  readonly engines: readonly { readonly engine: string; readonly ready: boolean; readonly reason: string }[];
}

export interface Seen {
  /** Data folder or broker. */
  readonly where: string;
  readonly endpoint: string;
  /** Undefined where it does not run. */
  readonly loop: Loop | undefined;
  /** Who answers where it should, though its broker does not: its own gateway, or another program. */
  readonly stranger: 'none' | 'gateway' | 'other';
  /** Undefined in a cluster. */
  readonly disk: { readonly usedBytes: number; readonly capBytes: number; readonly freeBytes: number } | undefined;
  /** The base model's name, its folder where it is gone or its weights have changed, and what the engine serves where it says so. */
  readonly base: {
    readonly name: string;
    readonly gone: string;
    readonly changed: string;
    readonly served: readonly string[];
  };
  /** Of the engine's answer to the key that this installation has for it; 0 without an answer. */
  readonly engineStatus: number;
  /** Address of an engine that runs elsewhere; empty where this machine runs its own. */
  readonly engineAt: string;
  readonly keys: { readonly file: string; readonly problem: string };
  /** An address of this machine at which the endpoint answers others without a key. */
  readonly openAt: string;
  /** Of all parts together; counters are since each part's start. */
  readonly metrics: Metrics;
  /** By how many seconds a part's clock is ahead of this one's. */
  readonly clocks: Readonly<Record<string, number>>;
}

const fullShare = 0.8;
const freeBytesMin = 1e9;
const skewSecondsMax = 5;
/** So many turns say something; fewer may be chance. */
const turnsEnough = 5;
const judgedEnough = 20;
const stepsEnough = 3;
const tooLongShare = 0.1;

type Look = (seen: Seen) => readonly Finding[];

const gigabytes = (bytes: number) => `${(bytes / 1e9).toFixed(1)} GB`;
const found = (code: string, what: string, mend: string): readonly Finding[] => [{ code, what, mend }];

export const neverStarted = (where: string): Finding => ({
  code: 'not_running',
  what: `Backtalk does not run here, and never did (${where})`,
  mend: 'npm start, or name its folder with --data DIR',
});

function running({ loop, stranger, where, endpoint, disk }: Seen): readonly Finding[] {
  if (loop !== undefined) return [];
  if (stranger === 'gateway') {
    const what = `the gateway answers at ${endpoint}, and its broker does not`;
    const mend =
      disk === undefined
        ? 'look at the pods of NATS, and at BACKTALK_NATS_URL here'
        : 'read logs/nats.log below the data folder, and start anew';
    return found('broker_away', what, mend);
  }
  if (stranger === 'other') {
    const what = `another program answers at ${endpoint}, and Backtalk does not run (${where})`;
    return found('port_taken', what, 'stop it, or start with other ports: npm start -- --port 31000');
  }
  if (disk === undefined) {
    const what = `no broker answers at ${where}, and no gateway at ${endpoint}`;
    return found('not_running', what, 'look at the pods, at port forwards, and at BACKTALK_NATS_URL here');
  }
  return found('not_running', `Backtalk does not run (${where})`, 'npm start, or name its folder with --data DIR');
}

const parts: Look = ({ loop, disk }) =>
  (loop?.parts ?? [])
    .filter(({ ready }) => !ready)
    .flatMap(({ part, why }) => {
      const mend =
        disk === undefined
          ? 'look whether its pod or container runs, and at what it logs'
          : `read logs/${part}.log below the data folder`;
      return found('part_down', `${part} is not ready: ${why}`, mend);
    });

function base({ base: { name, gone, changed, served }, loop }: Seen): readonly Finding[] {
  if (gone !== '') {
    const mend = 'put it back, or forget what was learned with npm run reset';
    return found('base_model', `the base model's folder ${gone} is gone, and what was learned belongs to it`, mend);
  }
  if (changed !== '') {
    const mend = 'put them back, start with another folder (--data NEW), or forget what was learned with npm run reset';
    return found('base_model', `the weights of ${name} in ${changed} are not those that was learned on`, mend);
  }
  if (loop === undefined || served.length === 0 || served.includes(name)) return [];
  const what = `what was learned belongs to ${name}, and the engine serves ${served.join(', ')}`;
  return found('base_model', what, 'start with that model (--model), or with another folder (--data NEW)');
}

const room: Look = ({ disk, loop }) => {
  const full = (loop?.policies ?? []).some(({ storageFull }) => storageFull);
  const share = disk === undefined || disk.capBytes === 0 ? 0 : disk.usedBytes / disk.capBytes;
  const trim = 'npx backtalk turns trim --older-than 30d, or npm start -- --data-cap SIZE';
  if (full) return found('data_cap', 'the data folder has reached its cap, and learning rests', trim);
  if (share >= fullShare && disk !== undefined) {
    const what = `the data folder holds ${(share * 100).toFixed(0)} % of its cap of ${gigabytes(disk.capBytes)}`;
    return found('data_cap', `${what}; learning rests when it is full`, trim);
  }
  return [];
};

const disk: Look = ({ disk: place }) =>
  place === undefined || place.freeBytes >= freeBytesMin
    ? []
    : found(
        'disk_full',
        `${gigabytes(place.freeBytes)} of the disk are free`,
        'make room: a full disk ends learning and the log',
      );

function engine({ engineStatus, engineAt, loop }: Seen): readonly Finding[] {
  if (loop === undefined) return [];
  if (engineAt !== '' && engineStatus === 0) {
    const mend = 'start it, or have this machine answer: npm start -- --engine builtin';
    return found('engine_away', `the engine at ${engineAt} (--engine) does not answer`, mend);
  }
  const refused = loop.engines.find(({ reason }) => /refuses the key/.test(reason));
  if (engineStatus !== 401 && engineStatus !== 403 && refused === undefined) return [];
  const what = `the engine refuses the key that it is given${refused === undefined ? '' : ` (${refused.engine})`}`;
  const together = 'start both together, or give both the same BACKTALK_ENGINE_KEY';
  return found('engine_key', what, engineAt === '' ? together : 'name the file with its key: --engine-key-file FILE');
}

const keys: Look = ({ keys: { file, problem }, openAt }) => [
  ...(problem === ''
    ? []
    : found('keys_file', `${file} ${problem}`, 'mend it (npx backtalk keys list), with mode 600')),
  ...(openAt === ''
    ? []
    : found('open_endpoint', `${openAt} answers without a key`, 'npx backtalk keys add, or --host 127.0.0.1')),
];

const paused: Look = ({ loop }) =>
  (loop?.policies ?? [])
    .filter((one) => one.paused)
    .flatMap(({ policy }) =>
      found('paused', `learning of ${policy} is paused`, `npx backtalk resume --policy ${policy}`),
    );

const held: Look = ({ loop }) =>
  (loop?.policies ?? [])
    .filter((one) => one.held !== '')
    .flatMap(({ policy, held: why }) =>
      found(
        'held',
        `training of ${policy} rests: ${why}`,
        `mend what it names, or retire or edit the lesson that is not learned (npx backtalk lessons); then npx backtalk resume --policy ${policy}`,
      ),
    );

function judged({ loop, metrics, disk }: Seen): readonly Finding[] {
  if (loop === undefined) return [];
  const { turnContinued = 0, turnJudged = 0 } = loop.facts;
  // The judge passes over turns that may not be learned from.
  const toJudge = turnContinued - metrics.sum('backtalk_gateway_untrainable_total', { reason: 'opted_out' });
  if (toJudge >= turnsEnough && turnJudged === 0) {
    const what = `${String(toJudge)} turns were continued, and none was ever judged`;
    const mend =
      disk === undefined
        ? 'look at what the judge logs, and at the engine that it asks'
        : 'look at the judge: logs/judge.log, npx backtalk status, and its address (--judge-url)';
    return found('never_judged', what, mend);
  }
  const votes = metrics.by('backtalk_judge_votes_cast_total', 'result');
  const valid = ['-1', '0', '1'].reduce((sum, verdict) => sum + (votes[verdict] ?? 0), 0);
  const reasons = worst(votes);
  if (valid > 0 || reasons.length === 0 || sumOf(votes) < turnsEnough) return [];
  const what = `none of ${String(sumOf(votes))} votes of the judge was valid (${named(reasons)})`;
  return found(
    'invalid_votes',
    what,
    'name a model that keeps to a format (--judge-url, --judge-model), or --judge-url none',
  );
}

/** What is to be done about the commonest reasons why a turn teaches nothing. */
const remedies: Readonly<Record<string, string>> = {
  too_long: 'samples are longer than sampleTokensMax: npx backtalk recipe, BACKTALK_RECIPE_SET, more memory',
  template_mismatch: "the template renders the conversation otherwise than it was captured: see the trainer's README",
  temperature: 'a training service learns from answers at temperature 1 alone: BACKTALK_TEMPERATURE, and clients',
  opted_out: 'requests say X-Backtalk-Train: off, or their key was made with --no-train',
  consent_unknown: 'their person said no before, and the sessions cannot be told apart: X-Backtalk-Train: on',
  nothing_to_learn:
    'no turn was corrected: say what should be otherwise, or look at the judge (npx backtalk judge eval)',
  stale: 'the judge is slower than the versions: npx backtalk status',
  unknown_ids: 'the engine and the training worker hold other models: start both with one',
};

function learned({ loop, metrics }: Seen): readonly Finding[] {
  if (loop === undefined || loop.policies.some((one) => one.paused || one.storageFull || one.held !== '')) return [];
  const { turnJudged = 0, weightsTrained = 0 } = loop.facts;
  if (turnJudged < judgedEnough || weightsTrained > 0) return [];
  const reasons = worst({
    ...metrics.by('backtalk_gateway_untrainable_total', 'reason'),
    ...metrics.by('backtalk_trainer_turns_settled_total', 'reason'),
    ...metrics.by('backtalk_trainer_samples_dropped_total', 'reason'),
  });
  const batch = loop.policies.find(({ withoutVersion }) => withoutVersion !== '')?.withoutVersion ?? '';
  const why = [batch, named(reasons)].filter((words) => words !== '').join('; ') || 'no reason was counted';
  const what = `${String(turnJudged)} turns were judged, and nothing was learned (${why})`;
  return found(
    'nothing_learned',
    what,
    remedies[reasons[0]?.[0] ?? ''] ?? 'npx backtalk batches says what became of each',
  );
}

/** What an operator can mend; what else fails is tried again, or given up. */
const trainingRemedies: Readonly<Record<string, string>> = {
  service_unavailable:
    'look at BACKTALK_TINKER_URL, BACKTALK_TINKER_KEY and the log of the trainer, which has its words',
  service_refused:
    'set in the recipe, or as BACKTALK_TINKER_MODEL, what the log of the trainer says that the service has (model, rank, alpha)',
  recipe_not_honoured: 'set in the recipe what the log of the trainer names',
  parent_elsewhere: 'set BACKTALK_TRAINING_BACKEND as it was, or train another policy',
  teacher_missing: 'name the model that teaches (npm start -- --teacher DIR), or another teacher in the recipe',
};

function training({ metrics }: Seen): readonly Finding[] {
  const outcomes = metrics.by('backtalk_training_steps_total', 'outcome');
  const [code, mend] = Object.entries(trainingRemedies).find(([name]) => (outcomes[name] ?? 0) >= stepsEnough) ?? [];
  if (code === undefined || mend === undefined) return [];
  return found('steps_not_taken', `the training worker did not take ${String(outcomes[code])} steps (${code})`, mend);
}

function context({ metrics }: Seen): readonly Finding[] {
  const refused = metrics.sum('backtalk_gateway_refused_total', { code: 'context_length_exceeded' });
  const askedBy = (route: string) => metrics.sum('backtalk_gateway_requests_total', { route });
  const asked = ['chat_completions', 'responses', 'messages'].reduce((sum, route) => sum + askedBy(route), 0);
  if (refused < turnsEnough || refused < asked * tooLongShare) return [];
  const what = `${String(refused)} of ${String(asked)} requests were longer than the model's context`;
  return found('context_short', what, 'serve a model with a longer context (--model), or have the agent send less');
}

const clocks: Look = ({ clocks: ahead }) =>
  Object.entries(ahead)
    .filter(([, seconds]) => Math.abs(seconds) > skewSecondsMax)
    .flatMap(([part, seconds]) =>
      found(
        'clock_skew',
        `the clock of ${part} differs by ${Math.abs(seconds).toFixed(0)} s`,
        'run a time service (NTP) on each machine',
      ),
    );

const dead: Look = ({ loop }) =>
  loop === undefined || loop.deadLetters === 0
    ? []
    : found(
        'dead_letters',
        `${String(loop.deadLetters)} facts could not be handled`,
        'npx backtalk dead-letters says why, and replays them',
      );

const looks: readonly Look[] = [
  running,
  disk,
  room,
  base,
  keys,
  parts,
  engine,
  clocks,
  paused,
  held,
  training,
  judged,
  learned,
  context,
  dead,
];

export const diagnose = (seen: Seen): readonly Finding[] => looks.flatMap((look) => look(seen));

const sumOf = (counts: Readonly<Record<string, number>>) =>
  Object.values(counts).reduce((sum, count) => sum + count, 0);

const reasonsShown = 3;

/** The most frequent first. */
const worst = (counts: Readonly<Record<string, number>>) =>
  Object.entries(counts)
    .toSorted(([, a], [, b]) => b - a)
    .slice(0, reasonsShown);

const named = (reasons: readonly (readonly [string, number])[]) =>
  reasons.map(([reason, count]) => `${reason} ${String(count)}`).join(', ');
