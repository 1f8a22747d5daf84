// What happens in the collector, each event in one place: its log line and its metrics.
import type { BacktalkError, Logger, Metrics } from '@backtalk/kit';
import { withheldSources } from './domain/consent.js';
import type { SessionClosed_Reason, TurnContinued } from '@backtalk/proto/facts';

export type Events = ReturnType<typeof createEvents>;

/** What holds the loop's state, as this process finds it. */
function storeEvents(metrics: Metrics) {
  const up = metrics.gauge('store_up', '1 while the store answers.', ['store']);
  const bytes = metrics.gauge(
    'stream_bytes',
    'Bytes in a stream of the broker; of turns, with the payloads beside it.',
    ['stream'],
  );
  const messages = metrics.gauge('stream_messages', 'Messages in a stream of the broker.', ['stream']);
  const bound = metrics.gauge('stream_bytes_max', 'What a stream may hold; absent where nothing bounds it.', [
    'stream',
  ]);
  const room = metrics.gauge('broker_bytes', 'Bytes that all streams of the broker hold together.', ['kind']);
  const roomMax = metrics.gauge(
    'broker_bytes_max',
    'What all streams together may hold; 0 where nothing says how much.',
    ['kind'],
  );
  const used = metrics.gauge('valkey_bytes', 'Memory that Valkey uses.');
  const usedMax = metrics.gauge('valkey_bytes_max', 'What Valkey may use, 0 where nothing bounds it.');
  return {
    storeLooked: (store: 'broker' | 'valkey', isUp: boolean): void => {
      up.set({ store }, isUp ? 1 : 0);
    },
    streamLooked: (stream: string, found: { bytes: number; messages: number; bytesMax: number }): void => {
      bytes.set({ stream }, found.bytes);
      messages.set({ stream }, found.messages);
      if (found.bytesMax > 0) bound.set({ stream }, found.bytesMax);
    },
    brokerLooked: (found: { kind: 'storage' | 'memory'; bytes: number; bytesMax: number }): void => {
      room.set({ kind: found.kind }, found.bytes);
      roomMax.set({ kind: found.kind }, found.bytesMax);
    },
    valkeyLooked: (bytesUsed: number, bytesMax: number): void => {
      used.set(bytesUsed);
      usedMax.set(bytesMax);
    },
  };
}

export function createEvents(logger: Logger, metrics: Metrics) {
  const linked = metrics.counter('turns_linked_total', 'Opened turns by what they turned out to be.', ['outcome']);
  const closed = metrics.counter('sessions_closed_total', 'Sessions that ended.', ['reason']);
  const late = metrics.counter('outcomes_late_total', 'Outcomes of sessions that were over before.');
  const open = metrics.gauge('sessions_open', 'Sessions in which something was said lately.');
  const withheld = metrics.counter('turns_withheld_total', 'Opened turns that are not trained on, by who said no.', [
    'source',
  ]);
  for (const source of withheldSources) withheld.inc({ source }, 0);
  const rebuilds = metrics.counter('index_rebuilds_total', 'Times that the index was rebuilt from the log.');
  return Object.assign(storeEvents(metrics), {
    continued: (fact: TurnContinued) => {
      linked.inc({ outcome: 'continued' });
      logger.debug('turn_continued', { turn: fact.turn, by: fact.continuedBy, messages: fact.nextState.length });
    },
    linked: (outcome: 'branch' | 'nothing_said' | 'waits_for_answer'): void => {
      linked.inc({ outcome });
    },
    /** For what it lacks; its answer is delivered again, but for what never comes. */
    waitingFailed: (error: BacktalkError, deliveries: number): void => {
      logger.warn('waiting_request_not_linked', { code: error.code, deliveries });
    },
    closed: (reason: SessionClosed_Reason, turns: number) => {
      closed.inc({ reason: reason.replace('REASON_', '').toLowerCase() });
      logger.debug('session_closed', { reason, turns });
    },
    outcomeLate: (): void => {
      late.inc();
      logger.warn('outcome_late');
    },
    withheld: (source: string): void => {
      withheld.inc({ source });
    },
    openSessions: (count: number) => {
      open.set(count);
    },
    idleLookFailed: (error: BacktalkError) => {
      logger.warn('idle_sessions_not_closed', { code: error.code });
    },
    rebuilt: (facts: number, milliseconds: number) => {
      rebuilds.inc();
      logger.info('index_rebuilt', { facts, milliseconds });
    },
  });
}
