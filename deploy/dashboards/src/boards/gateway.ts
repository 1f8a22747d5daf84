// What clients get: how many are answered, how fast, how often not, and whether their turns are kept.
import { eachPod, inRange, most, perSecond, quantile, shareOf, total } from '../queries.js';
import type { Dashboard, Row } from '../spec.js';

const chat = 'route=~"chat_completions|responses|messages"';
const inGateway = 'job=~".*gateway.*"';

const clients: Row = {
  title: 'Clients',
  panels: [
    {
      title: 'Requests by status',
      description:
        'Chat requests answered a second, by HTTP status. 429 means that a key or all engines are at their limit; 5xx that something behind the gateway failed.',
      kind: 'stacked',
      unit: 'reqps',
      queries: [{ expr: perSecond('backtalk_gateway_requests_total', 'status', chat), legend: '{{status}}' }],
    },
    {
      title: 'Refused, by code',
      description:
        'Requests refused or failed, by the code that the client was told. The gateway README explains each.',
      kind: 'stacked',
      unit: 'reqps',
      queries: [{ expr: perSecond('backtalk_gateway_refused_total', 'code'), legend: '{{code}}' }],
    },
    {
      title: 'Share answered with 5xx',
      bounds: { alert: 'BacktalkGatewayErrors', above: 0.05 },
      description: 'Of chat requests. Above 5 % for some minutes the alert BacktalkGatewayErrors fires.',
      kind: 'lines',
      unit: 'percentunit',
      min: 0,
      max: 1,
      queries: [
        {
          expr: shareOf('backtalk_gateway_requests_total', 'status=~"5.."', chat),
          legend: '5xx',
        },
      ],
    },
    {
      title: 'Time to the first token',
      bounds: { alert: 'BacktalkFirstTokenSlow', above: 10 },
      description:
        'From request to first frame, engine included. What the gateway itself adds is a millisecond or two; the rest is the engine and its queue.',
      kind: 'lines',
      unit: 's',
      queries: [
        { expr: quantile(0.5, 'backtalk_gateway_first_token_seconds'), legend: 'median' },
        { expr: quantile(0.95, 'backtalk_gateway_first_token_seconds'), legend: '95 %' },
        { expr: quantile(0.99, 'backtalk_gateway_first_token_seconds'), legend: '99 %' },
      ],
    },
    {
      title: 'Time to the end of the answer',
      description: 'From request to the last frame. Long answers are long: read it beside the tokens a second.',
      kind: 'lines',
      unit: 's',
      queries: [
        { expr: quantile(0.5, 'backtalk_gateway_answer_seconds'), legend: 'median' },
        { expr: quantile(0.99, 'backtalk_gateway_answer_seconds'), legend: '99 %' },
      ],
    },
    {
      title: 'Requests in flight',
      description: 'Chat requests that are being answered now, by replica. Even lines mean that the load is spread.',
      kind: 'stacked',
      unit: 'short',
      queries: [{ expr: total('backtalk_gateway_requests_in_hand', eachPod), legend: '{{pod}}' }],
    },
    {
      title: 'Tokens',
      description: 'Prompt tokens taken in and answer tokens given, a second.',
      kind: 'lines',
      unit: 'ops',
      queries: [{ expr: perSecond('backtalk_gateway_tokens_total', 'kind'), legend: '{{kind}}' }],
    },
    {
      title: 'Clients that went or did not read',
      description:
        'Answers that the client did not wait for, and clients cut because they stopped reading. Both end the work at the engine.',
      kind: 'lines',
      unit: 'ops',
      queries: [
        { expr: perSecond('backtalk_gateway_aborted_total'), legend: 'aborted' },
        { expr: perSecond('backtalk_gateway_slow_readers_total'), legend: 'slow readers' },
      ],
    },
    {
      title: 'Sessions ended by clients',
      description: 'Sessions that a client closed, through the API or a done flag.',
      kind: 'lines',
      unit: 'ops',
      queries: [{ expr: perSecond('backtalk_gateway_sessions_ended_total'), legend: 'ended' }],
    },
  ],
};

const engines: Row = {
  title: 'Engines, as the gateway sees them',
  panels: [
    {
      title: 'Engines that can serve',
      description: 'By gateway. All gateways should see the same number; 0 means that every request is refused.',
      kind: 'lines',
      unit: 'short',
      queries: [{ expr: most('backtalk_gateway_engines_ready', eachPod), legend: '{{pod}}' }],
    },
    {
      title: 'Answers asked for again',
      description:
        'Before the first byte an answer may be asked for again at another engine, or after the routes were read anew. Clients do not notice.',
      kind: 'stacked',
      unit: 'ops',
      queries: [{ expr: perSecond('backtalk_gateway_engine_retries_total', 'why'), legend: '{{why}}' }],
    },
    {
      title: 'Answers that engines did not complete',
      description: 'By code. Clients see an error frame in the stream, or a 5xx.',
      kind: 'stacked',
      unit: 'ops',
      queries: [{ expr: perSecond('backtalk_gateway_engine_failures_total', 'code'), legend: '{{code}}' }],
    },
    {
      title: 'Engines that ended on a prompt',
      description:
        'In the time range: engines that were gone after they had been sent a prompt, and prompts that were given up because two engines ended on them (BacktalkPromptsGivenUp).',
      kind: 'lines',
      unit: 'short',
      queries: [
        { expr: inRange('backtalk_gateway_engine_deaths_total'), legend: 'engines gone' },
        { expr: inRange('backtalk_gateway_prompts_given_up_total'), legend: 'prompts given up' },
      ],
    },
  ],
};

const keeping: Row = {
  title: 'Keeping turns',
  panels: [
    {
      title: 'Where finished turns were stored',
      description:
        'broker: in the log. spool: on this gateway’s disk until the broker is back. nowhere: lost, which only capture policies that allow it can do.',
      kind: 'stacked',
      unit: 'ops',
      queries: [{ expr: perSecond('backtalk_gateway_turns_stored_total', 'where'), legend: '{{where}}' }],
    },
    {
      title: 'How long final frames were held',
      description: 'The last frame waits until the turn is stored. Above 0.3 s the turn goes to the spool instead.',
      kind: 'lines',
      unit: 's',
      queries: [
        { expr: quantile(0.5, 'backtalk_gateway_store_seconds'), legend: 'median' },
        { expr: quantile(0.99, 'backtalk_gateway_store_seconds'), legend: '99 %' },
      ],
    },
    {
      title: 'Spool',
      description:
        'Bytes on disk that wait for the broker, by gateway. It drains by itself; a full spool refuses requests where capture is required.',
      kind: 'stacked',
      unit: 'bytes',
      queries: [{ expr: total('backtalk_gateway_spool_bytes', eachPod), legend: '{{pod}}' }],
    },
    {
      title: 'Fill of the spools',
      description:
        'Share of what a gateway’s spool may hold. A full one refuses requests, or loses turns where capture is best-effort.',
      kind: 'lines',
      unit: 'percentunit',
      max: 1,
      bounds: { alert: 'BacktalkSpoolNearlyFull', above: 0.7 },
      queries: [
        {
          expr: `${most('backtalk_gateway_spool_bytes', eachPod)} / ${most('backtalk_gateway_spool_bytes_max', eachPod)}`,
          legend: '{{pod}}',
        },
      ],
    },
    {
      title: 'Breaker',
      description:
        '1 while a gateway stores turns in its spool without asking the broker, because the broker was slow or away.',
      kind: 'lines',
      unit: 'none',
      max: 1,
      queries: [{ expr: most('backtalk_gateway_breaker_open', eachPod), legend: '{{pod}}' }],
    },
    {
      title: 'Spool drained, rejected, torn',
      description:
        'Facts moved from the spool to the broker; facts that the broker will never take; files that a crash left half-written. The last two are rare and are logged.',
      kind: 'lines',
      unit: 'ops',
      queries: [
        { expr: perSecond('backtalk_gateway_spool_drained_total'), legend: 'drained' },
        { expr: perSecond('backtalk_gateway_spool_rejected_total'), legend: 'rejected' },
        { expr: perSecond('backtalk_gateway_spool_torn_total'), legend: 'torn' },
      ],
    },
    {
      title: 'Done without Valkey',
      description:
        'Calls to Valkey that were given up after a few milliseconds, by purpose. Sessions are then linked by the collector alone, limits counted by each gateway for itself.',
      kind: 'stacked',
      unit: 'ops',
      queries: [{ expr: perSecond('backtalk_gateway_valkey_skipped_total', 'purpose'), legend: '{{purpose}}' }],
    },
  ],
};

const process: Row = {
  title: 'The processes',
  panels: [
    {
      title: 'CPU',
      description:
        'Cores in use, by gateway. A Node process uses one core for its own work: near 1 it is the bottleneck.',
      kind: 'lines',
      unit: 'short',
      queries: [{ expr: perSecond('process_cpu_seconds_total', eachPod, inGateway), legend: '{{pod}}' }],
    },
    {
      title: 'Memory',
      description: 'Resident memory, by gateway. It should be flat under steady load.',
      kind: 'lines',
      unit: 'bytes',
      queries: [{ expr: most('process_resident_memory_bytes', eachPod, inGateway), legend: '{{pod}}' }],
    },
    {
      title: 'Event loop lag',
      description: 'How late timers run, 99 %. It delays every stream of that gateway.',
      kind: 'lines',
      unit: 's',
      queries: [{ expr: most('nodejs_eventloop_lag_p99_seconds', eachPod, inGateway), legend: '{{pod}}' }],
    },
  ],
};

export const gateway: Dashboard = {
  name: 'gateway',
  title: 'Backtalk / Gateway',
  description: 'What clients get, and whether their turns are kept.',
  byPolicy: false,
  rows: [clients, engines, keeping, process],
};
