// How versions come to answer: prepared, measured at the gate, routed to, rolled back, retired.
import {
  eachPod,
  fewInRange,
  inRange,
  most,
  mostOfLeader,
  perSecond,
  quantileInRange,
  stableVersion,
} from '../queries.js';
import type { Dashboard, Row } from '../spec.js';

const versions: Row = {
  title: 'Versions',
  panels: [
    {
      title: 'Version that answers',
      description: 'Number of the version to which new requests go. A step up is a swap, a step down a rollback.',
      kind: 'lines',
      unit: 'none',
      width: 12,
      queries: [{ expr: stableVersion, legend: '{{namespace}} {{release}} {{policy}}' }],
    },
    {
      title: 'Staged in the time range',
      description:
        'candidate: brought to the gate. stable: answers. burned: refused by the gate or rolled back, never served again.',
      kind: 'bars',
      unit: 'short',
      width: 6,
      queries: [{ expr: inRange('backtalk_publisher_versions_total', 'stage'), legend: '{{stage}}' }],
    },
    {
      title: 'Rollbacks',
      description: 'In the time range. A rollback is a Commit of the version before, which is still loaded.',
      kind: 'number',
      unit: 'short',
      queries: [{ expr: inRange('backtalk_publisher_rollbacks_total'), legend: 'rollbacks' }],
    },
  ],
};

const speed: Row = {
  title: 'How long a swap takes',
  panels: [
    {
      title: 'Commit',
      description:
        'From the first Commit to the last gateway that routes to the new version. 100 ms is the aim; no request waits for it: streams in flight finish on the old version.',
      kind: 'lines',
      unit: 'ms',
      queries: [
        { expr: quantileInRange(0.5, 'backtalk_publisher_commit_milliseconds'), legend: 'median' },
        { expr: quantileInRange(0.99, 'backtalk_publisher_commit_milliseconds'), legend: '99 %' },
      ],
    },
    {
      title: 'Prepare',
      description:
        'Until the last loader had fetched, checked, loaded and warmed up the version, beside those that serve.',
      kind: 'lines',
      unit: 's',
      queries: [
        { expr: quantileInRange(0.5, 'backtalk_publisher_prepare_seconds'), legend: 'median' },
        { expr: quantileInRange(0.95, 'backtalk_publisher_prepare_seconds'), legend: '95 %' },
      ],
    },
    {
      title: 'Candidate to served',
      description: 'The whole way of a version through the publisher: prepare, gate, Commit.',
      kind: 'lines',
      unit: 's',
      queries: [
        { expr: quantileInRange(0.5, 'backtalk_publisher_swap_seconds'), legend: 'median' },
        { expr: quantileInRange(0.95, 'backtalk_publisher_swap_seconds'), legend: '95 %' },
      ],
    },
    {
      title: 'Prepare at the loaders, by phase',
      description:
        'fetch: out of the blob store, with its digests checked. load: into the engine. warm_up: one answer, so that the first client does not pay. 95 % of the cases.',
      kind: 'lines',
      unit: 's',
      queries: [{ expr: quantileInRange(0.95, 'backtalk_loader_prepare_seconds', 'phase'), legend: '{{phase}}' }],
    },
  ],
};

const gate: Row = {
  title: 'The gate',
  panels: [
    {
      title: 'Parity of the newest candidate',
      description:
        'Mean |Δ logprob| between engine and training worker on probe answers. Above its bound the version is burned: the engine would not serve what was trained.',
      kind: 'lines',
      unit: 'short',
      queries: [{ expr: mostOfLeader('backtalk_publisher_gate_parity', 'policy'), legend: '{{policy}}' }],
    },
    {
      title: 'Drift of the newest candidate',
      description:
        'KL to what the base says, shown the lessons in force or not, nats an answer. Above its bound the version is burned.',
      kind: 'lines',
      unit: 'short',
      queries: [{ expr: mostOfLeader('backtalk_publisher_gate_drift', 'policy'), legend: '{{policy}}' }],
    },
    {
      title: 'Faulty answers of the newest candidate',
      description:
        'Of its answers to probe questions, by fault. Where they are more than chance would give, the version is burned.',
      kind: 'stacked',
      unit: 'short',
      queries: [
        {
          expr: mostOfLeader('backtalk_publisher_gate_faulty_answers', 'policy, fault'),
          legend: '{{policy}} {{fault}}',
        },
      ],
    },
    {
      title: 'Answering probe questions',
      description: 'Seconds until the newest candidates had answered probe questions and their answers were scored.',
      kind: 'lines',
      unit: 's',
      queries: [{ expr: quantileInRange(0.95, 'backtalk_publisher_gate_behaviour_seconds'), legend: '95 %' }],
    },
    {
      title: 'Corrected turns asked again of the newest candidate',
      description:
        'Cases of learned lessons. held: of a lesson that it holds, or that nothing held before; lost: of one that what serves holds and it does not. One that is lost burns the version.',
      kind: 'stacked',
      unit: 'short',
      queries: [
        { expr: mostOfLeader('backtalk_publisher_gate_cases', 'policy, result'), legend: '{{policy}} {{result}}' },
      ],
    },
    {
      title: 'Versions burned before they served, by reason',
      description:
        'What the gate refused, by the check that refused it. The whole reason stands in `backtalk versions`.',
      kind: 'stacked',
      unit: 'short',
      queries: [{ expr: fewInRange('backtalk_publisher_burned_total', 'reason'), legend: '{{reason}}' }],
    },
    {
      title: 'Prepared at the loaders, by outcome',
      description:
        'loaded, or the code of the error. A blob that is corrupt or of the wrong shape burns the version; anything else leaves that loader out until it has caught up.',
      kind: 'stacked',
      unit: 'short',
      queries: [{ expr: fewInRange('backtalk_loader_prepares_total', 'outcome'), legend: '{{outcome}}' }],
    },
  ],
};

const others: Row = {
  title: 'Who follows',
  panels: [
    {
      title: 'Fence of the routes in force',
      description:
        'By gateway and, in comparison, at the publisher. A gateway that stays behind the others sends requests to an older version.',
      kind: 'lines',
      unit: 'none',
      queries: [
        { expr: most('backtalk_gateway_routes_fence', `${eachPod}, policy`), legend: 'gateway {{pod}} {{policy}}' },
        { expr: most('backtalk_publisher_fence', `${eachPod}, policy`), legend: 'publisher {{pod}} {{policy}}' },
      ],
    },
    {
      title: 'Loaders left out',
      description:
        'Loaders that could not prepare a version, by code. They are not routed to for that version, and catch up by themselves.',
      kind: 'stacked',
      unit: 'short',
      queries: [{ expr: fewInRange('backtalk_publisher_loaders_left_out_total', 'code'), legend: '{{code}}' }],
    },
    {
      title: 'Gateways that did not answer Commit',
      description: 'By code. A gateway that missed it reads the routes by itself.',
      kind: 'stacked',
      unit: 'short',
      queries: [{ expr: fewInRange('backtalk_publisher_commit_failures_total', 'code'), legend: '{{code}}' }],
    },
    {
      title: 'Versions held',
      description:
        'By loader, the base among them. Engines hold at least three of a policy: stable, the one before, and a candidate.',
      kind: 'lines',
      unit: 'short',
      queries: [{ expr: most('backtalk_loader_versions_held', eachPod), legend: '{{pod}}' }],
    },
    {
      title: 'Retired',
      description:
        'Versions taken off loaders, and unloaded from engines, a second. A version goes when no stream runs on it any more.',
      kind: 'lines',
      unit: 'ops',
      queries: [
        { expr: perSecond('backtalk_publisher_retired_total'), legend: 'taken off a loader' },
        { expr: perSecond('backtalk_loader_retires_total'), legend: 'unloaded' },
      ],
    },
    {
      title: 'Who leads',
      description: '1 for the publisher that leads; exactly one should. None: versions are trained and not served.',
      kind: 'lines',
      unit: 'none',
      max: 1,
      queries: [{ expr: most('backtalk_publisher_leading', eachPod), legend: '{{pod}}' }],
    },
  ],
};

export const swaps: Dashboard = {
  name: 'swaps',
  title: 'Backtalk / Swaps',
  description: 'How versions come to answer.',
  byPolicy: false,
  rows: [versions, speed, gate, others],
};
