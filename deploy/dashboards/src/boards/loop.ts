// The dashboard to open first: where turns are on their way from a request to weights that answer, and how long it takes.
import {
  fewInRange,
  inRange,
  most,
  mostOfLeader,
  ofEachService,
  ofPolicy,
  only,
  perSecond,
  quantileInRange,
  stableVersionOfPolicy,
  total,
  totalOfLeader,
} from '../queries.js';
import type { Dashboard, Row } from '../spec.js';
import { stores } from './stores.js';

const chat = 'route=~"chat_completions|responses|messages"';
const openBatches = only('backtalk_trainer_batch_open_timestamp_seconds', ofPolicy);

const funnel: Row = {
  title: 'The funnel',
  panels: [
    {
      title: 'From request to weights, in the time range',
      description:
        'How many of each there were. Requests become turns; turns are trainable unless there is a reason against it; a turn is judged when the conversation goes on after it; judged turns are sampled into batches; a batch trains a version; a version is served once it passed the gate. The first four know no policy, and are of all. A sharp drop between two bars is where to look: the rows below have the same order.',
      kind: 'bars',
      unit: 'short',
      queries: [
        { expr: inRange('backtalk_gateway_requests_total', '', chat), legend: '1 requests' },
        { expr: inRange('backtalk_gateway_turns_total'), legend: '2 turns' },
        { expr: inRange('backtalk_gateway_turns_total', '', 'trainable="true"'), legend: '3 trainable turns' },
        {
          expr: inRange('backtalk_collector_turns_linked_total', '', 'outcome="continued"'),
          legend: '4 continued turns',
        },
        { expr: inRange('backtalk_judge_turns_judged_total', '', ofPolicy), legend: '5 judged turns' },
        { expr: inRange('backtalk_trainer_samples_taken_total', '', ofPolicy), legend: '6 sampled turns' },
        {
          expr: fewInRange('backtalk_trainer_steps_total', '', `outcome="trained", ${ofPolicy}`),
          legend: '7 trained versions',
        },
        {
          expr: inRange('backtalk_publisher_versions_total', '', `stage="stable", ${ofPolicy}`),
          legend: '8 served versions',
        },
      ],
    },
    {
      title: 'Feedback to weights',
      description:
        'From the moment in which something was said after an answer to the moment in which weights that learned from it were staged for all; median and the slowest twentieth. It holds the wait for a full batch, so it is short where people talk much.',
      kind: 'number',
      unit: 's',
      width: 8,
      queries: [
        { expr: quantileInRange(0.5, 'backtalk_trainer_feedback_to_weights_seconds', '', ofPolicy), legend: 'median' },
        { expr: quantileInRange(0.95, 'backtalk_trainer_feedback_to_weights_seconds', '', ofPolicy), legend: '95 %' },
      ],
    },
    {
      title: 'Version that answers',
      description:
        'Number of the version to which new requests go, as the leading publisher has it. 0 is the base model.',
      kind: 'number',
      unit: 'none',
      width: 4,
      queries: [{ expr: stableVersionOfPolicy, legend: '{{namespace}} {{release}} {{policy}}' }],
    },
    {
      title: 'Newest trained version',
      description:
        'Number of the newest version that training made. It is ahead of the version that answers while a candidate is at the gate, or when the newest ones were burned.',
      kind: 'number',
      unit: 'none',
      width: 4,
      queries: [{ expr: mostOfLeader('backtalk_trainer_version_number', 'policy', ofPolicy), legend: '{{policy}}' }],
    },
    {
      title: 'What the ledger does',
      description:
        'The state of each policy at the trainer that leads: collecting (waits for turns), queued (its batch waits for a training worker), training, awaiting_decision (a candidate is at the gate), paused (by an operator), storage_full, held (three versions were burned, or three batches given up, in a row), troubled (it tries again; the log says why). Nothing: no trainer leads.',
      kind: 'stacked',
      unit: 'none',
      width: 8,
      queries: [
        {
          expr: `${mostOfLeader('backtalk_trainer_ledger_state', 'policy, state', ofPolicy)} > 0`,
          legend: '{{policy}} {{state}}',
        },
      ],
    },
  ],
};

const flow: Row = {
  title: 'Rate, lag and oldest age of each stage',
  panels: [
    {
      title: 'Rate',
      description: 'How many pass each stage a second. In a loop that keeps up, all lines rise and fall together.',
      kind: 'lines',
      unit: 'ops',
      queries: [
        { expr: perSecond('backtalk_gateway_requests_total', '', chat), legend: '1 requests' },
        { expr: perSecond('backtalk_gateway_turns_total'), legend: '2 turns' },
        { expr: perSecond('backtalk_gateway_turns_total', '', 'trainable="true"'), legend: '3 trainable' },
        { expr: perSecond('backtalk_collector_turns_linked_total', '', 'outcome="continued"'), legend: '4 continued' },
        { expr: perSecond('backtalk_judge_turns_judged_total', '', ofPolicy), legend: '5 judged' },
        { expr: perSecond('backtalk_trainer_samples_taken_total', '', ofPolicy), legend: '6 sampled' },
        { expr: perSecond('backtalk_trainer_steps_total', '', `outcome="trained", ${ofPolicy}`), legend: '7 trained' },
        { expr: perSecond('backtalk_publisher_versions_total', '', `stage="stable", ${ofPolicy}`), legend: '8 served' },
      ],
    },
    {
      title: 'Lag: what waits before each stage',
      description:
        'How many wait. Requests in flight, turns that the collector has not linked, continued turns that the judge has not judged, votes in queues, judged turns that wait for a batch, open batches, versions that the publisher has not decided on. A line that only rises belongs to the stage that needs more replicas, or attention.',
      kind: 'lines',
      unit: 'short',
      queries: [
        { expr: total('backtalk_gateway_requests_in_hand'), legend: '1 requests in flight' },
        {
          expr: most('backtalk_collector_facts_pending', 'fact', 'fact=~"turnOpened|turnCompleted"'),
          legend: '2 to link: {{fact}}',
        },
        { expr: most('backtalk_judge_facts_pending', '', 'fact="turnContinued"'), legend: '5 to judge' },
        { expr: most('backtalk_judge_votes_waiting'), legend: '5 votes to cast' },
        { expr: totalOfLeader('backtalk_trainer_turns_pending', 'kind', ofPolicy), legend: '6 to sample: {{kind}}' },
        { expr: `sum(${openBatches} > bool 0)`, legend: '7 batches to train' },
        {
          expr: `sum(${most('backtalk_publisher_facts_pending', 'policy', ofPolicy)})`,
          legend: '8 versions to decide',
        },
      ],
    },
    {
      title: 'Oldest age in each stage',
      description:
        'How long the oldest one has been in the hands of each stage. Judged turns that wait for a batch grow old on purpose; everything else should stay at seconds, a step and a swap at what they take.',
      kind: 'lines',
      unit: 's',
      queries: [
        { expr: most('backtalk_collector_facts_oldest_age_seconds'), legend: '2 to link' },
        { expr: most('backtalk_judge_facts_oldest_age_seconds', '', 'fact="turnContinued"'), legend: '5 to judge' },
        { expr: most('backtalk_judge_votes_oldest_age_seconds'), legend: '5 vote to cast' },
        {
          expr: most('backtalk_trainer_facts_oldest_age_seconds', '', `fact="turnJudged", ${ofPolicy}`),
          legend: '6 waits for a batch',
        },
        { expr: `max((time() - ${openBatches}) * (${openBatches} > bool 0))`, legend: '7 step' },
        { expr: most('backtalk_publisher_facts_oldest_age_seconds', '', ofPolicy), legend: '8 version to decide' },
      ],
    },
    {
      title: 'Time to handle a fact',
      description:
        'What 95 % of the deliveries stay below, by service and fact. The stage whose line rises is slow, or waits for a store; what it cannot do in time comes again.',
      kind: 'lines',
      unit: 's',
      queries: [
        {
          expr: `histogram_quantile(0.95, sum by (le, job, fact) (rate(${ofEachService('facts_handling_seconds_bucket')}[$__rate_interval])))`,
          legend: '{{job}} {{fact}}',
        },
      ],
    },
    {
      title: 'Facts in flight and held',
      description:
        'In flight: being handled now. Held: handled, and kept until their effect is stored, such as turns that wait for a batch. A service takes no more once it has as many as it may.',
      kind: 'lines',
      unit: 'short',
      queries: [
        { expr: `sum by (job) (${ofEachService('facts_in_hand')})`, legend: '{{job}} in flight' },
        { expr: `sum by (job) (${ofEachService('facts_held')})`, legend: '{{job}} held' },
      ],
    },
  ],
};

const reasons: Row = {
  title: 'Why turns leave the funnel',
  panels: [
    {
      title: 'Not trainable, by reason',
      description:
        'Reasons against training on a turn, at the gateway; a turn may have several. opted_out and pinned_version are what clients wish, aborted that they did not wait. no_token_ids and its like mean that an engine does not say what it sampled: such an engine teaches nothing.',
      kind: 'stacked',
      unit: 'ops',
      queries: [{ expr: perSecond('backtalk_gateway_untrainable_total', 'reason'), legend: '{{reason}}' }],
    },
    {
      title: 'Withheld, by who said no',
      description:
        'Turns that are not trained on: the key’s setting, the request’s header, the session’s earlier no; unknown: of a person who once said no, on answers that no turn is known of.',
      kind: 'stacked',
      unit: 'ops',
      queries: [{ expr: perSecond('backtalk_collector_turns_withheld_total', 'source'), legend: '{{source}}' }],
    },
    {
      title: 'What requests turned out to be',
      description:
        'continued: it goes on after a known answer. nothing_said: it adds nothing that anybody said. branch: a second continuation of the same answer. waits_for_answer: the answer that it continues is not in the log yet.',
      kind: 'stacked',
      unit: 'ops',
      queries: [{ expr: perSecond('backtalk_collector_turns_linked_total', 'outcome'), legend: '{{outcome}}' }],
    },
    {
      title: 'Not judged, by reason',
      description:
        'Continued turns that the judge passes over: opted out, side requests such as titles, or judged before.',
      kind: 'stacked',
      unit: 'ops',
      queries: [{ expr: perSecond('backtalk_judge_turns_skipped_total', 'reason'), legend: '{{reason}}' }],
    },
    {
      title: 'Hints that are not taken, by reason',
      description:
        'Of the judge: not_said (the person said nothing of the kind), disputed (votes disagree), template_token (it quotes one). Of the trainer: what no teacher may be shown.',
      kind: 'stacked',
      unit: 'ops',
      queries: [
        { expr: perSecond('backtalk_judge_hints_dropped_total', 'reason'), legend: 'judge: {{reason}}' },
        { expr: perSecond('backtalk_trainer_hints_refused_total', 'reason', ofPolicy), legend: 'trainer: {{reason}}' },
      ],
    },
    {
      title: 'Settled without training, by reason',
      description:
        'Judged turns that no batch takes. nothing_to_learn is the ordinary end of a turn without a verdict or a hint. stale grows when training is slower than talk; burned_version after a rollback.',
      kind: 'stacked',
      unit: 'ops',
      queries: [{ expr: perSecond('backtalk_trainer_turns_settled_total', 'reason', ofPolicy), legend: '{{reason}}' }],
    },
    {
      title: 'Samples taken, by what they bring',
      description:
        'effective: carries a verdict or a hint. anchor: a satisfied turn that keeps the rest of the behaviour in place.',
      kind: 'stacked',
      unit: 'ops',
      queries: [{ expr: perSecond('backtalk_trainer_samples_taken_total', 'kind', ofPolicy), legend: '{{kind}}' }],
    },
    {
      title: 'Facts by what became of them',
      description:
        'All consumers of the log together. retried and waited come with outages and pass. dead means that a fact was given up: see `backtalk dead-letters`.',
      kind: 'stacked',
      unit: 'ops',
      queries: [
        {
          expr: `sum by (outcome) (rate({__name__=~"backtalk_.+_facts_handled_total", namespace=~"$namespace", release=~"$release"}[$__rate_interval]))`,
          legend: '{{outcome}}',
        },
      ],
    },
  ],
};

const words: Row = {
  title: 'What is said',
  panels: [
    {
      title: 'Verdicts',
      description:
        '1: the task moved on. -1: a correction. 0: unclear. A rising share of -1 after a swap is the first sign of a bad version.',
      kind: 'stacked',
      unit: 'ops',
      queries: [
        { expr: perSecond('backtalk_judge_turns_judged_total', 'verdict', ofPolicy), legend: 'verdict {{verdict}}' },
      ],
    },
    {
      title: 'Hints and lessons',
      description:
        'Hints: judgements a second that carry what a person said instead. Lessons: wishes that hold beyond their turn, by state; active and learned ones are in force.',
      kind: 'lines',
      unit: 'short',
      queries: [
        { expr: perSecond('backtalk_judge_hints_found_total'), legend: 'hints a second' },
        { expr: totalOfLeader('backtalk_trainer_lessons_known', 'state', ofPolicy), legend: '{{state}} lessons' },
      ],
    },
    {
      title: 'Lessons shown',
      description:
        'How many lessons a second engines are shown beside questions, for who asks for it; and how often they could not be read, so that none was shown.',
      kind: 'lines',
      unit: 'ops',
      queries: [
        { expr: perSecond('backtalk_gateway_lessons_shown_total'), legend: 'shown' },
        { expr: perSecond('backtalk_gateway_lessons_unread_total'), legend: 'not to be read' },
      ],
    },
    {
      title: 'New wishes put to the judge’s model',
      description:
        'In the time range, by outcome. read: it said how the wish stands to earlier ones. Anything else is why words decided, which find fewer that mean the same. None where no judge reads.',
      kind: 'stacked',
      unit: 'short',
      queries: [{ expr: fewInRange('backtalk_trainer_wishes_asked_total', 'outcome'), legend: '{{outcome}}' }],
    },
    {
      title: 'Feedback in so many words',
      description: 'Explicit feedback through the API, by score. It outranks the judge.',
      kind: 'stacked',
      unit: 'ops',
      queries: [{ expr: perSecond('backtalk_gateway_feedback_total', 'score'), legend: 'score {{score}}' }],
    },
    {
      title: 'Sessions',
      description: 'Sessions in which something was said lately, and how many closed a second, by reason.',
      kind: 'lines',
      unit: 'short',
      queries: [
        { expr: most('backtalk_collector_sessions_open'), legend: 'open' },
        {
          expr: perSecond('backtalk_collector_sessions_closed_total', 'reason'),
          legend: 'closed a second: {{reason}}',
        },
      ],
    },
    {
      title: 'What closed sessions gave',
      description:
        'effective: at least one sample that teaches. kept: one was kept by the at-least-one rule. nothing: the session taught nothing. votes_disagree and off: the rule did not apply. Outcomes of attempts that come after their session teach nothing.',
      kind: 'stacked',
      unit: 'ops',
      queries: [
        { expr: perSecond('backtalk_judge_sessions_closed_total', 'result'), legend: '{{result}}' },
        { expr: perSecond('backtalk_collector_outcomes_late_total'), legend: 'outcome came too late' },
      ],
    },
    {
      title: 'Index rebuilt from the log',
      description:
        'How often the collector had to rebuild its index because Valkey had lost it. Nothing is lost; it costs a read of the log.',
      kind: 'number',
      unit: 'short',
      width: 8,
      queries: [{ expr: inRange('backtalk_collector_index_rebuilds_total'), legend: 'rebuilds' }],
    },
  ],
};

export const loop: Dashboard = {
  name: 'loop',
  title: 'Backtalk / Loop',
  description: 'Where turns are on their way from a request to weights that answer.',
  byPolicy: true,
  rows: [funnel, flow, stores, reasons, words],
};
