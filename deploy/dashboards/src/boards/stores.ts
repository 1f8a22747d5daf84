// A row of the dashboard Loop: whether broker and Valkey answer, and how full they are.
import { most, mostOfLeader } from '../queries.js';
import type { Row } from '../spec.js';

export const stores: Row = {
  title: 'Broker and Valkey',
  panels: [
    {
      title: 'Stores that answer',
      description:
        '1 while the broker and Valkey answer the collector. 0 for two minutes: the alert BacktalkStoreAway.',
      kind: 'lines',
      unit: 'none',
      max: 1,
      queries: [{ expr: most('backtalk_collector_store_up', 'store'), legend: '{{store}}' }],
    },
    {
      title: 'Bytes of the streams',
      description:
        'What the broker holds: the turns until they are too old, the weights’ history, the blobs where the broker keeps them.',
      kind: 'lines',
      unit: 'bytes',
      queries: [
        { expr: most('backtalk_collector_stream_bytes', 'stream'), legend: '{{stream}}' },
        { expr: mostOfLeader('backtalk_trainer_payload_bytes', ''), legend: 'of TURNS, payloads in the blob store' },
      ],
    },
    {
      title: 'Messages of the streams',
      description: 'How many facts, and pieces of blobs, the broker holds.',
      kind: 'lines',
      unit: 'short',
      queries: [{ expr: most('backtalk_collector_stream_messages', 'stream'), legend: '{{stream}}' }],
    },
    {
      title: 'Fill of the streams',
      description:
        'Share of what a stream may hold, for those that are bounded; payloads beside the log of turns count as its own. A full stream of turns refuses new ones.',
      kind: 'lines',
      unit: 'percentunit',
      max: 1,
      bounds: { alert: 'BacktalkStreamNearlyFull', above: 0.7 },
      queries: [
        {
          expr: `${most('backtalk_collector_stream_bytes', 'stream')} / ${most('backtalk_collector_stream_bytes_max', 'stream')}`,
          legend: '{{stream}}',
        },
      ],
    },
    {
      title: 'Fill of the broker',
      description:
        'Share of what all streams may hold together, blobs and weights among them, on its fullest server. A full broker stores nothing.',
      kind: 'lines',
      unit: 'percentunit',
      max: 1,
      bounds: { alert: 'BacktalkBrokerNearlyFull', above: 0.8 },
      queries: [
        {
          expr: `${most('backtalk_collector_broker_bytes', 'kind')} / (${most('backtalk_collector_broker_bytes_max', 'kind')} > 0)`,
          legend: '{{kind}}',
        },
      ],
    },
    {
      title: 'Fill of Valkey',
      description:
        'Share of the memory that Valkey may use. A full one refuses writes: no vote is queued, nothing linked.',
      kind: 'lines',
      unit: 'percentunit',
      max: 1,
      bounds: { alert: 'BacktalkValkeyNearlyFull', above: 0.8 },
      queries: [
        {
          expr: `${most('backtalk_collector_valkey_bytes')} / (${most('backtalk_collector_valkey_bytes_max')} > 0)`,
          legend: 'valkey',
        },
      ],
    },
  ],
};
