// How turns are judged: how many, how fast, on what they rest, and how far votes agree.
import { eachPod, inRange, meanInRange, most, perSecond, quantile, shareOf, total } from '../queries.js';
import type { Dashboard, Row } from '../spec.js';

const verdicts: Row = {
  title: 'Judgements',
  panels: [
    {
      title: 'Judged turns by what they rest on',
      description:
        'votes: the judge model’s majority. evidence: exit codes, tool errors and the like. feedback: a person said it. at_least_one: a session’s best turn was kept.',
      kind: 'stacked',
      unit: 'ops',
      queries: [{ expr: perSecond('backtalk_judge_turns_judged_total', 'source'), legend: '{{source}}' }],
    },
    {
      title: 'Share of verdicts in the time range',
      description:
        'Which verdicts there were. A judge that says the same of everything teaches nothing: read a few of the turns that it judged.',
      kind: 'bars',
      unit: 'percentunit',
      width: 8,
      queries: [
        {
          expr: `${inRange('backtalk_judge_turns_judged_total', 'verdict')} / on () group_left () ${inRange('backtalk_judge_turns_judged_total')}`,
          legend: 'verdict {{verdict}}',
        },
      ],
    },
    {
      title: 'Judgements with a hint',
      description:
        'Share of judgements from which a standing instruction was taken. Hints are what distillation learns from.',
      kind: 'lines',
      unit: 'percentunit',
      queries: [
        {
          expr: `${perSecond('backtalk_judge_hints_found_total')} / ${perSecond('backtalk_judge_turns_judged_total')}`,
          legend: 'with a hint',
        },
      ],
    },
    {
      title: 'Agreement of votes',
      description: 'Mean share of the valid votes that agree with the majority. Near 0.5 the judge guesses.',
      kind: 'number',
      unit: 'percentunit',
      width: 8,
      queries: [{ expr: meanInRange('backtalk_judge_confidence_ratio'), legend: 'agreement' }],
    },
    {
      title: 'Evidence found',
      description: 'Pieces of evidence a second, by name. They stand beside the votes on every judgement.',
      kind: 'stacked',
      unit: 'ops',
      queries: [{ expr: perSecond('backtalk_judge_evidence_found_total', 'name'), legend: '{{name}}' }],
    },
    {
      title: 'Time from turn to judgement',
      description: 'All votes of a turn are cast at once, so this is near the slowest vote plus the queue.',
      kind: 'lines',
      unit: 's',
      queries: [
        { expr: quantile(0.5, 'backtalk_judge_turn_seconds'), legend: 'median' },
        { expr: quantile(0.95, 'backtalk_judge_turn_seconds'), legend: '95 %' },
      ],
    },
  ],
};

const votes: Row = {
  title: 'Votes',
  panels: [
    {
      title: 'Votes by result',
      description: '1, 0, -1 are valid votes. timeout, engine and unparsed ones count as null.',
      kind: 'stacked',
      unit: 'ops',
      queries: [{ expr: perSecond('backtalk_judge_votes_cast_total', 'result'), legend: '{{result}}' }],
    },
    {
      title: 'Share of valid votes',
      bounds: { alert: 'BacktalkVotesInvalid', below: 0.7 },
      description:
        'Below 0.7 for some time the alert BacktalkVotesInvalid fires: the judge model does not answer, or not in the form asked for.',
      kind: 'lines',
      unit: 'percentunit',
      min: 0,
      max: 1,
      queries: [{ expr: shareOf('backtalk_judge_votes_cast_total', 'result=~"-1|0|1"'), legend: 'valid' }],
    },
    {
      title: 'Planted turns judged right',
      description:
        'Of the newest forty turns whose verdict is known, by judge; flips: of those that speak to a judge, how many swayed it. Below BACKTALK_JUDGE_PLANTED_MIN (0.5) the votes of that judge do not count.',
      kind: 'lines',
      unit: 'percentunit',
      min: 0,
      max: 1,
      queries: [
        { expr: most('backtalk_judge_planted_accuracy_ratio', eachPod), legend: '{{pod}} right' },
        { expr: most('backtalk_judge_planted_flips_ratio', eachPod), legend: '{{pod}} flips' },
      ],
    },
    {
      title: 'Planted turns judged',
      description:
        'In the time range. Where it is 0 while votes are cast, the shares beside it are old: the log says why (planting_failed).',
      kind: 'number',
      unit: 'short',
      width: 8,
      queries: [{ expr: inRange('backtalk_judge_planted_judged_total'), legend: 'judged' }],
    },
    {
      title: 'Judges whose votes count',
      bounds: { alert: 'BacktalkVotesUntrusted', below: 1 },
      description: '1 where they do. 0: too few planted turns are judged right, and the votes are null by name.',
      kind: 'lines',
      unit: 'none',
      min: 0,
      max: 1,
      queries: [{ expr: most('backtalk_judge_votes_trusted', eachPod), legend: '{{pod}}' }],
    },
    {
      title: 'Time of one try of a vote',
      description: 'One request to an engine of the judge pool, its queue included.',
      kind: 'lines',
      unit: 's',
      queries: [
        { expr: quantile(0.5, 'backtalk_judge_vote_seconds'), legend: 'median' },
        { expr: quantile(0.95, 'backtalk_judge_vote_seconds'), legend: '95 %' },
      ],
    },
    {
      title: 'Requests for votes in words',
      description:
        'By what came of them. engine_overloaded: a limit, votes wait. invalid_request: once a field that the engine does not take; more of them make votes null.',
      kind: 'stacked',
      unit: 'ops',
      queries: [{ expr: perSecond('backtalk_judge_requests_total', 'outcome'), legend: '{{outcome}}' }],
    },
    {
      title: 'Tokens of votes in words',
      description:
        'As the engines count them. prompt is what their caches did not have: of the votes of one turn, all but the first share nearly all of their prompts.',
      kind: 'stacked',
      unit: 'ops',
      queries: [{ expr: perSecond('backtalk_judge_tokens_total', 'kind'), legend: '{{kind}}' }],
    },
    {
      title: 'Cost of votes in the time range',
      description: 'At the prices that are set (BACKTALK_JUDGE_PRICE_PROMPT and _ANSWER); 0 where none are.',
      kind: 'number',
      unit: 'short',
      width: 8,
      queries: [{ expr: inRange('backtalk_judge_cost_total'), legend: 'cost' }],
    },
    {
      title: 'Turns judged without votes',
      description:
        'share: left out by BACKTALK_JUDGE_VOTE_SHARE. behind: the policy had moved on while the turn waited, so that evidence alone decides. Much of it means that the judge pool is too small: BacktalkJudgeBehind.',
      kind: 'stacked',
      unit: 'ops',
      queries: [{ expr: perSecond('backtalk_judge_turns_without_votes_total', 'reason'), legend: '{{reason}}' }],
    },
    {
      title: 'Votes that wait',
      description:
        'In the queue that all judges share, as each of them reports it. More engines in the judge pool, or more judges, bring it down.',
      kind: 'lines',
      unit: 'short',
      queries: [{ expr: most('backtalk_judge_votes_waiting'), legend: 'votes' }],
    },
    {
      title: 'Oldest waiting vote',
      bounds: { alert: 'BacktalkVotesWaiting', above: 120 },
      description:
        'In the queue that all judges share; autoscaling of the judge looks at it. It says that votes wait, whatever their number.',
      kind: 'lines',
      unit: 's',
      queries: [{ expr: most('backtalk_judge_votes_oldest_age_seconds'), legend: 'oldest' }],
    },
    {
      title: 'Jobs by what became of them',
      description:
        'Each vote is a job, and so is the judgement that follows from the votes. retried ones come again with back-off, waited ones when what they need is back, dead ones are made anew from the fact.',
      kind: 'stacked',
      unit: 'ops',
      queries: [{ expr: perSecond('backtalk_judge_jobs_handled_total', 'outcome'), legend: '{{outcome}}' }],
    },
  ],
};

const work: Row = {
  title: 'Work in flight',
  panels: [
    {
      title: 'Turns in flight',
      description:
        'By the judge that holds the fact; any judge casts the votes. It is bounded by BACKTALK_JUDGE_TURNS_IN_FLIGHT: a line at the bound means that the judge is full.',
      kind: 'stacked',
      unit: 'short',
      queries: [{ expr: total('backtalk_judge_turns_in_flight', eachPod), legend: '{{pod}}' }],
    },
    {
      title: 'Facts not yet settled',
      description: 'Continued turns, feedback and closed sessions in the log that no judge has settled.',
      kind: 'lines',
      unit: 'short',
      queries: [{ expr: most('backtalk_judge_facts_pending', 'fact'), legend: '{{fact}}' }],
    },
    {
      title: 'Engines of the judge pool',
      description: 'As each judge knows them, by leases or by URL. 0 means that no vote can be cast.',
      kind: 'lines',
      unit: 'short',
      queries: [{ expr: most('backtalk_judge_engines_known', eachPod), legend: '{{pod}}' }],
    },
    {
      title: 'Votes queued again',
      description:
        'Votes whose jobs had vanished from Valkey, and were queued anew. It happens when Valkey lost its memory.',
      kind: 'number',
      unit: 'short',
      width: 8,
      queries: [{ expr: inRange('backtalk_judge_votes_requeued_total'), legend: 'queued again' }],
    },
  ],
};

export const judge: Dashboard = {
  name: 'judge',
  title: 'Backtalk / Judge',
  description: 'How turns are judged, how fast, and how far votes agree.',
  byPolicy: false,
  rows: [verdicts, votes, work],
};
