// What happens in the gateway, as operators see it: one function for each event writes its log line and its metrics
// together. Labels have few values; no text, id of a person, or name of a tenant ever goes in.
import type { BacktalkError, Logger, Metrics } from '@backtalk/kit';

export type GatewayEvents = ReturnType<typeof createEvents>;

/** Where a finished turn was stored. */
export type StoredWhere = 'broker' | 'spool' | 'nowhere';

const secondsBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];
const storeBuckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.3, 0.5, 1];

export function createEvents(logger: Logger, metrics: Metrics) {
  return {
    ...requestEvents(logger, metrics),
    ...turnEvents(logger, metrics),
    ...storeEvents(logger, metrics),
    ...controlEvents(logger, metrics),
  };
}

function requestEvents(logger: Logger, metrics: Metrics) {
  const requests = metrics.counter('requests_total', 'Requests answered, by route and status.', ['route', 'status']);
  const refused = metrics.counter('refused_total', 'Requests refused or failed, by code.', ['code']);
  const inHand = metrics.gauge('requests_in_hand', 'Chat requests being answered now.');
  const firstToken = metrics.histogram('first_token_seconds', 'From request to first frame.', secondsBuckets);
  const answer = metrics.histogram('answer_seconds', 'From request to the end of the answer.', secondsBuckets);
  const retried = metrics.counter('engine_retries_total', 'Answers asked for again at an engine, by why.', ['why']);
  const broken = metrics.counter('engine_failures_total', 'Answers that an engine did not complete, by code.', [
    'code',
  ]);
  const deaths = metrics.counter('engine_deaths_total', 'Engines that were gone after they had been sent a prompt.');
  const givenUp = metrics.counter('prompts_given_up_total', 'Prompts given up because two engines ended on them.');
  const cut = metrics.counter('slow_readers_total', 'Clients cut because they stopped reading.');
  return {
    requestTaken: () => inHand.inc(),
    requestLeft: () => inHand.dec(),
    answered: (route: string, status: number) => requests.inc({ route, status }),
    refused(route: string, error: BacktalkError): void {
      refused.inc({ code: error.code });
      if ((error.status ?? 500) >= 500) logger.warn('request_failed', { route, error });
      else logger.debug('request_refused', { route, code: error.code });
    },
    firstToken: (seconds: number) => firstToken.observe(seconds),
    answerEnded: (seconds: number) => answer.observe(seconds),
    engineRetried(why: string): void {
      retried.inc({ why });
      logger.warn('engine_retried', { why });
    },
    engineDied(turn: string): void {
      deaths.inc();
      logger.warn('engine_died', { turn });
    },
    promptGivenUp(turn: string): void {
      givenUp.inc();
      logger.error('prompt_given_up', { turn });
    },
    engineFailed(turn: string, error: BacktalkError): void {
      broken.inc({ code: error.code });
      logger.warn('engine_failed', { turn, error });
    },
    readerCut(turn?: string): void {
      cut.inc();
      logger.warn('reader_cut', { turn });
    },
  };
}

function turnEvents(logger: Logger, metrics: Metrics) {
  const turns = metrics.counter('turns_total', 'Turns ended, by whether they may be trained on.', ['trainable']);
  const untrainable = metrics.counter('untrainable_total', 'Reasons against training on a turn.', ['reason']);
  const aborted = metrics.counter('aborted_total', 'Answers that the client did not wait for.');
  const capped = metrics.counter('turns_capped_total', 'Turns not stored: a share of the day was full, by whose.', [
    'of',
  ]);
  // From 0, or the first of its kind would be no increase.
  for (const of of ['key', 'tenant']) capped.inc({ of }, 0);
  const tokens = metrics.counter('tokens_total', 'Tokens, by kind.', ['kind']);
  const feedback = metrics.counter('feedback_total', 'Feedback stored, by score.', ['score']);
  const ended = metrics.counter('sessions_ended_total', 'Sessions that clients closed.');
  const shown = metrics.counter('lessons_shown_total', 'Lessons that engines were shown in the prompt of an answer.');
  const unread = metrics.counter('lessons_unread_total', 'Times that lessons could not be read, and none were shown.');
  return {
    turnEnded(
      turn: string,
      reasons: readonly string[],
      usage: { promptTokens: number; completionTokens: number },
    ): void {
      turns.inc({ trainable: String(reasons.length === 0) });
      for (const reason of reasons) untrainable.inc({ reason });
      if (reasons.includes('aborted')) aborted.inc();
      tokens.inc({ kind: 'prompt' }, usage.promptTokens);
      tokens.inc({ kind: 'answer' }, usage.completionTokens);
      logger.debug('turn_ended', { turn, reasons });
    },
    turnCapped(of: 'key' | 'tenant'): void {
      capped.inc({ of });
      logger.debug('turn_capped', { of });
    },
    feedbackStored(turn: string, score: number | undefined): void {
      feedback.inc({ score: String(score ?? 'none') });
      logger.debug('feedback_stored', { turn });
    },
    lessonChanged(action: string): void {
      logger.info('lesson_changed', { action });
    },
    lessonsShown: (count: number) => shown.inc({}, count),
    lessonsUnread(error: BacktalkError): void {
      unread.inc();
      logger.warn('lessons_unread', { error });
    },
    sessionEnded(session: string): void {
      ended.inc();
      logger.debug('session_ended', { session });
    },
  };
}

function storeEvents(logger: Logger, metrics: Metrics) {
  const stored = metrics.counter('turns_stored_total', 'Finished turns, by where they were stored.', ['where']);
  // From 0, or the first turn that is lost would be no increase.
  for (const where of ['broker', 'spool', 'nowhere']) stored.inc({ where }, 0);
  const wait = metrics.histogram('store_seconds', 'How long final frames were held.', storeBuckets);
  const open = metrics.gauge('breaker_open', '1 while finished turns go to the spool without asking the broker.');
  const bytes = metrics.gauge('spool_bytes', 'Bytes in the spool.');
  const bound = metrics.gauge('spool_bytes_max', 'Bytes that the spool may hold.');
  const drained = metrics.counter('spool_drained_total', 'Facts moved from the spool to the broker.');
  const rejected = metrics.counter('spool_rejected_total', 'Facts in the spool that the broker will never take.');
  const rotten = metrics.counter('spool_unreadable_total', 'Records of the spool that were lost: set aside as .bad.');
  const disk = metrics.gauge('spool_disk_failed', '1 while the disk takes nothing that the spool writes.');
  const torn = metrics.counter('spool_torn_total', 'Spool files that ended in a torn record.');
  const skipped = metrics.counter('valkey_skipped_total', 'Calls to Valkey given up, by purpose.', ['purpose']);
  return {
    turnStored(turn: string, where: StoredWhere, seconds: number): void {
      stored.inc({ where });
      wait.observe(seconds);
      if (where === 'nowhere') logger.error('turn_uncaptured', { turn });
    },
    breakerOpened(error: BacktalkError): void {
      open.set(1);
      logger.warn('breaker_opened', { error });
    },
    breakerClosed(): void {
      open.set(0);
      logger.info('breaker_closed');
    },
    spoolSize: (size: number) => bytes.set(size),
    spoolBound: (bytesMax: number) => bound.set(bytesMax),
    spoolDrained(count: number): void {
      drained.inc(count);
      logger.info('spool_drained', { count });
    },
    spoolRejected(error: BacktalkError): void {
      rejected.inc();
      logger.error('spool_record_rejected', { error });
    },
    spoolRotten(unreadable: number): void {
      rotten.inc(unreadable);
      logger.error('spool_segment_set_aside', { unreadable });
    },
    spoolDisk(state: 'failed' | 'taken'): void {
      disk.set(state === 'failed' ? 1 : 0);
      if (state === 'taken') logger.info('spool_disk_back');
    },
    spoolTorn(tornBytes: number): void {
      torn.inc();
      logger.warn('spool_torn', { tornBytes });
    },
    spoolFailed: (error: BacktalkError) => logger.error('spool_failed', { error }),
    drainPaused: (error: BacktalkError) => logger.warn('drain_paused', { error }),
    valkeySkipped: (purpose: string) => skipped.inc({ purpose }),
    valkeyFailed: (error: BacktalkError) => logger.warn('valkey_failed', { error }),
  };
}

function controlEvents(logger: Logger, metrics: Metrics) {
  const fence = metrics.gauge('routes_fence', 'Fence of the routes in force, by policy.', ['policy']);
  const streams = metrics.gauge('engines_ready', 'Engines that can serve now.');
  return {
    routed(policy: string, newFence: number): void {
      fence.set({ policy }, newFence);
      logger.info('routes_changed', { policy, fence: newFence });
    },
    enginesSeen: (ready: number) => streams.set(ready),
    keysLoaded: (count: number) => logger.info('keys_loaded', { count }),
    keysGone: (markFile: string) =>
      logger.error('keys_gone', {
        markFile,
        what: 'No key is known, and there was one: every request is refused. Make a key, or remove markFile and start again to serve this machine without keys.',
      }),
    keysFailed: (error: BacktalkError) => logger.warn('keys_failed', { error }),
    watchFailed: (what: string, error: BacktalkError) => logger.warn('watch_failed', { what, error }),
  };
}
