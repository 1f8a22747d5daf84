// Processes and stores that are not there, and one that soon nobody would let in.
import { awayFor, type Expected, type Fault } from '../fault.js';

const gone = (job: string): Expected => ({ alert: 'BacktalkComponentGone', labels: { job } });
const storeAway = (store: string): Expected => ({ alert: 'BacktalkStoreAway', labels: { store } });

export const presenceFaults: readonly Fault[] = [
  awayFor('gateway', { alert: 'BacktalkGatewayGone' }),
  awayFor('collector', gone('collector')),
  awayFor('judge', gone('judge')),
  awayFor('trainer', gone('trainer'), { alert: 'BacktalkNoTrainer' }),
  awayFor('publisher', gone('publisher'), { alert: 'BacktalkNoPublisher' }),
  awayFor('loader', gone('loader')),
  awayFor(
    'engine',
    gone('engine-serving'),
    { alert: 'BacktalkNoEngine' },
    { alert: 'BacktalkJudgeNoEngine' },
    { alert: 'BacktalkEngineNotReady' },
  ),
  {
    fault: 'publisher has been away since before Prometheus began',
    fires: [{ alert: 'BacktalkComponentMissing', labels: { job: 'publisher' } }],
    break: async (scene) => {
      scene.away('publisher');
      await scene.watch.forget();
      return () => scene.back('publisher');
    },
  },
  {
    fault: 'the collector has a certificate of ten days; mended by one of ninety, and a restart',
    fires: [{ alert: 'BacktalkCertificateExpiring' }],
    break: async (scene) => {
      await scene.certify(10);
      return () => scene.certify(90);
    },
  },
  awayFor('nats', storeAway('broker'), { alert: 'BacktalkSpooling' }),
  awayFor(
    'valkey',
    storeAway('valkey'),
    { alert: 'BacktalkWithoutValkey' },
    { alert: 'BacktalkFactStuck', labels: { fact: 'turnOpened' } },
  ),
];

/** A stand-in for the training worker has no metrics: this one is the real one. */
export const realTrainingFaults: readonly Fault[] = [awayFor('training-worker', gone('training'))];
