// What steps do to the weights: losses term by term, how far off-policy the samples are, how far a step moved.
import {
  eachPod,
  fewInRange,
  inRange,
  most,
  mostOfLeader,
  ofPolicy,
  perSecond,
  quantileInRange,
  total,
} from '../queries.js';
import type { Bounds, Dashboard, Panel, Row } from '../spec.js';

/** Figures of the last step, by the names that the training worker gives them. */
function figures(title: string, description: string, names: readonly string[], unit = 'short', bounds?: Bounds): Panel {
  const expr = most('backtalk_trainer_step_measurement', 'policy, name', `name=~"${names.join('|')}", ${ofPolicy}`);
  const queries = [{ expr, legend: '{{policy}} {{name}}' }];
  const panel = { title, description, kind: 'lines', unit, queries } as const;
  return bounds === undefined ? panel : Object.assign(panel, { bounds });
}

const losses: Row = {
  title: 'Losses of the last step',
  panels: [
    figures(
      'Loss terms',
      'The whole loss and its terms before their weights: binary (reward), opd (distillation towards the model that was shown the lessons) and the KL to the base, at the last of a batch’s steps. Terms that have nothing to say are 0.',
      ['loss', 'loss_binary', 'loss_opd', 'loss_kl'],
    ),
    figures(
      'Divergence to the teacher',
      'Nats an answer between the weights and the same model shown the lessons. It is of all lessons in force together, and rises with each new one; how far each has come says npx backtalk lessons show.',
      ['divergence'],
    ),
    figures(
      'Gradient norm',
      'Before it is clipped at 1, the largest of a batch’s steps. A jump means that the batch is unlike those before it.',
      ['gradient_norm'],
    ),
  ],
};

const policyDistance: Row = {
  title: 'How far off-policy the samples are',
  panels: [
    figures(
      'v: trainer against engine',
      'v = π_old / μ, the ratio of what the trainer computes to what the engine sampled with. Its mean should stay within 0.95 and 1.05; otherwise engine and trainer disagree about the same weights, or samples are too old.',
      ['v_mean', 'v_max'],
      'short',
      { alert: 'BacktalkRatioOff', below: 0.95, above: 1.05 },
    ),
    figures(
      'ρ: step against old weights',
      'ρ = π_θ / π_old at the last optimiser step. It is 1 at the first; with one step a batch it stays there.',
      ['rho_mean'],
    ),
    figures(
      'Effective sample size',
      'Share of the samples that count after weighting with v; 1 is all. Below 0.3 a few samples decide the step.',
      ['ess'],
      'percentunit',
      { alert: 'BacktalkFewSamplesCount', below: 0.3 },
    ),
    figures(
      'Masked and clipped shares',
      'Tokens whose ratio is out of bounds and that sampled terms leave out; tokens at which the clip acts. Above 20 % masked an alert fires.',
      ['masked_share', 'clipped_share'],
      'percentunit',
      { alert: 'BacktalkTokensMasked', above: 0.2 },
    ),
    figures(
      'Logprobs: engine against trainer',
      'Mean |log μ − log π_old| and the same with its sign. The first rising from version to version, or a bias above 0.1, means that the engine does not serve what was trained.',
      ['logprob_difference', 'logprob_bias'],
      'short',
      { alert: 'BacktalkLogprobsBiased', below: -0.1, above: 0.1 },
    ),
    figures('Entropy', 'Nats a token. A steady fall says that answers become more and more alike.', ['entropy']),
  ],
};

const distance: Row = {
  title: 'How far the weights moved',
  panels: [
    figures(
      'KL to the base',
      'Nats an answer between the weights and the base model. The publisher burns a version that drifts further than it may.',
      ['kl_base'],
    ),
    figures(
      'KL of the step',
      'Nats an answer between the weights before and after all steps of a batch. It is held below the recipe’s stepBoundNats (40 in the recipe tiny, 0.5 in small) by shrinking them.',
      ['kl_step'],
    ),
    figures(
      'Step scale',
      'What was left of the step after the bound: 1 is all of it, 0 none.',
      ['step_scale'],
      'percentunit',
    ),
  ],
};

const steps: Row = {
  title: 'Steps',
  panels: [
    {
      title: 'Steps by how they ended',
      description:
        'trained: a version. interrupted: the same step is taken again. step_failed: the batch was given up, its samples are settled by name. step_skipped: a guard kept it from making a version. burned_parent: what it would have built upon was burned.',
      kind: 'stacked',
      unit: 'short',
      queries: [{ expr: fewInRange('backtalk_trainer_steps_total', 'outcome', ofPolicy), legend: '{{outcome}}' }],
    },
    {
      title: 'Time of a step',
      description: 'From the request to the training worker until the version is stored, in the time range.',
      kind: 'lines',
      unit: 's',
      queries: [
        { expr: quantileInRange(0.5, 'backtalk_trainer_step_seconds', '', ofPolicy), legend: 'median' },
        { expr: quantileInRange(0.95, 'backtalk_trainer_step_seconds', '', ofPolicy), legend: '95 %' },
      ],
    },
    {
      title: 'Steps put off, by why',
      description:
        'In the time range: steps that wait to be tried again, by the code of what kept them. service_unavailable: no training worker answers. out_of_memory: it has too little.',
      kind: 'stacked',
      unit: 'short',
      queries: [{ expr: fewInRange('backtalk_trainer_steps_put_off_total', 'code', ofPolicy), legend: '{{code}}' }],
    },
    {
      title: 'Guards that acted',
      description:
        'In the time range: figures of a step that were out of their bounds. mask: terms were left out of the step. skip: no version came of it; what was measured says the trainer’s log (guard_acted).',
      kind: 'stacked',
      unit: 'short',
      queries: [
        {
          expr: fewInRange('backtalk_trainer_guards_acted_total', 'guard, action', ofPolicy),
          legend: '{{guard}} {{action}}',
        },
      ],
    },
    figures(
      'Samples and tokens of the last step',
      'How many samples were trained on, and how many answer tokens they had.',
      ['samples_trained', 'tokens'],
    ),
    {
      title: 'Samples dropped, by reason',
      description:
        'Samples of a batch that the step left out. too_long: more tokens than the recipe takes. template_mismatch: engine and trainer render the prompt differently.',
      kind: 'stacked',
      unit: 'short',
      queries: [{ expr: inRange('backtalk_trainer_samples_dropped_total', 'reason', ofPolicy), legend: '{{reason}}' }],
    },
    {
      title: 'Share with another template',
      description:
        'Samples whose prompt engines render otherwise than it was captured, of those taken. They lose their teacher; above 2 % an alert fires.',
      kind: 'lines',
      unit: 'percentunit',
      queries: [
        {
          expr: `${inRange('backtalk_trainer_samples_dropped_total', 'policy', `reason="template_mismatch", ${ofPolicy}`)} / ${inRange('backtalk_trainer_samples_taken_total', 'policy', ofPolicy)}`,
          legend: '{{policy}}',
        },
      ],
      bounds: { alert: 'BacktalkTemplateMismatch', above: 0.02 },
    },
    {
      title: 'Batches closed, by why',
      description:
        'full: enough effective samples. timeout: the oldest had waited long enough. settled: no training, turns are let go of. Others: a batch was given up.',
      kind: 'stacked',
      unit: 'short',
      queries: [{ expr: fewInRange('backtalk_trainer_batches_closed_total', 'why', ofPolicy), legend: '{{why}}' }],
    },
    {
      title: 'Turns that wait for a batch',
      description:
        'effective ones fill it, idle ones may come along as anchors, settled ones are told in the next fact.',
      kind: 'stacked',
      unit: 'short',
      queries: [
        {
          expr: mostOfLeader('backtalk_trainer_turns_pending', 'policy, kind', ofPolicy),
          legend: '{{policy}} {{kind}}',
        },
      ],
    },
    {
      title: 'Judged facts read',
      description:
        'pending: the turn waits now. settled_before: a batch has taken or settled it already; many of them after a restart are normal. forgotten: it is of a person who has left.',
      kind: 'stacked',
      unit: 'ops',
      queries: [{ expr: perSecond('backtalk_trainer_turns_judged_total', 'outcome', ofPolicy), legend: '{{outcome}}' }],
    },
    {
      title: 'Who leads',
      description: '1 for the trainer that leads; exactly one should. None: no turn becomes weights.',
      kind: 'lines',
      unit: 'none',
      max: 1,
      queries: [{ expr: most('backtalk_trainer_leader_active', eachPod), legend: '{{pod}}' }],
    },
    {
      title: 'Removed from the blob store',
      description:
        'In the time range. Files of old versions: the newest and those that serve stay. Payloads: of facts that have left the log.',
      kind: 'number',
      unit: 'short',
      width: 8,
      queries: [
        { expr: inRange('backtalk_trainer_files_swept_total', '', ofPolicy), legend: 'files' },
        { expr: inRange('backtalk_trainer_payloads_swept_total'), legend: 'payloads' },
      ],
    },
  ],
};

const workers: Row = {
  title: 'Training workers',
  panels: [
    {
      title: 'Busy',
      description: 'Steps in flight, by training worker: 0 or 1.',
      kind: 'stacked',
      unit: 'none',
      queries: [{ expr: total('backtalk_training_busy_steps', eachPod), legend: '{{pod}}' }],
    },
    {
      title: 'Workers that take steps',
      description:
        '1 for each training worker that was there, and took no step of another trainer, when the trainer that leads asked it last; 0 with a reason in its log (training_worker_away).',
      kind: 'lines',
      unit: 'none',
      max: 1,
      queries: [{ expr: mostOfLeader('backtalk_trainer_training_worker_up', 'worker'), legend: '{{worker}}' }],
    },
    {
      title: 'Calls refused, by code',
      description:
        'Calls of the trainer that a training worker answered with an error, in the time range. The worker’s README explains each.',
      kind: 'stacked',
      unit: 'short',
      queries: [{ expr: fewInRange('backtalk_training_calls_refused_total', 'code'), legend: '{{code}}' }],
    },
    {
      title: 'Answer tokens trained on',
      description: 'How many a second, over all training workers: the speed of training.',
      kind: 'lines',
      unit: 'ops',
      queries: [{ expr: perSecond('backtalk_training_tokens_total'), legend: 'tokens' }],
    },
    {
      title: 'Blob cache',
      description:
        'Adapters and optimiser states that a training worker keeps at hand. It is bounded; what falls out is fetched again.',
      kind: 'lines',
      unit: 'bytes',
      queries: [{ expr: most('backtalk_training_blob_cache_bytes', eachPod), legend: '{{pod}}' }],
    },
  ],
};

export const training: Dashboard = {
  name: 'training',
  title: 'Backtalk / Training',
  description: 'What steps do to the weights.',
  byPolicy: true,
  rows: [losses, policyDistance, distance, steps, workers],
};
