// What happens in a loader: one function for each event writes its log line and its metrics together.
import type { BacktalkError, Logger, Metrics } from '@backtalk/kit';
import type { EngineLease } from '@backtalk/proto/weights';

const secondBuckets = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120];

/** What bringing one version to the engine took; all zero where it held the version already. */
export interface PrepareTimes {
  readonly fetchSeconds: number;
  readonly loadSeconds: number;
  readonly warmUpSeconds: number;
  readonly already: boolean;
}

export type LoaderEvents = ReturnType<typeof createEvents>;

export function createEvents(logger: Logger, metrics: Metrics) {
  const prepares = metrics.counter('prepares_total', 'Versions prepared, by outcome (loaded or an error code).', [
    'outcome',
  ]);
  const seconds = metrics.histogram('prepare_seconds', 'Time to prepare a version, by phase.', secondBuckets, [
    'phase',
  ]);
  const retires = metrics.counter('retires_total', 'Versions unloaded.');
  const restarts = metrics.counter('engine_restarts_total', 'Times that the engine had lost what it held.');
  const ready = metrics.gauge('engine_ready', '1 while the engine may be routed to.');
  const held = metrics.gauge('versions_held', 'Versions loaded and warm, the base among them.');

  return {
    prepared(version: string, times: PrepareTimes): void {
      prepares.inc({ outcome: 'loaded' });
      seconds.observe({ phase: 'fetch' }, times.fetchSeconds);
      seconds.observe({ phase: 'load' }, times.loadSeconds);
      seconds.observe({ phase: 'warm_up' }, times.warmUpSeconds);
      logger.info('version_prepared', { version, ...times });
    },
    prepareFailed(version: string, error: BacktalkError): void {
      prepares.inc({ outcome: error.code });
      logger.error('version_prepare_failed', { version, error });
    },
    retired(version: string): void {
      retires.inc();
      logger.info('version_retired', { version });
    },
    strangerFound(version: string): void {
      logger.warn('adapter_not_ours', { version });
    },
    unloadFailed(version: string, error: BacktalkError): void {
      logger.warn('version_unload_failed', { version, error });
    },
    unloadGivenUp(version: string, tries: number): void {
      logger.error('version_unload_given_up', { version, tries, until: 'the load set changes' });
    },
    engineProbed(engine: EngineLease): void {
      const { baseModel, maxContext, capabilities } = engine;
      logger.info('engine_probed', { baseModel, maxContext, capabilities });
    },
    engineLost(reason: string): void {
      logger.warn('engine_lost', { reason });
    },
    versionsLost(versions: readonly string[]): void {
      restarts.inc();
      logger.warn('engine_restarted', { lost: versions });
    },
    versionsEvicted(versions: readonly string[]): void {
      logger.warn('versions_evicted', { versions, why: 'the engine has places for fewer adapters than it is to hold' });
    },
    checkFailed(error: BacktalkError): void {
      logger.warn('engine_check_failed', { error });
    },
    engineChanged(engine: EngineLease): void {
      ready.set(engine.ready ? 1 : 0);
      held.set(engine.versions.length);
      logger.info('engine_changed', { ready: engine.ready, reason: engine.reason, versions: engine.versions });
    },
  };
}
