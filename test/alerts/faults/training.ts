// A training worker that is away, stands still, or cannot store what it made; and gateways that know different routes.
import { holdTraining } from '../../loop/controls.js';
import { awayFor, type Fault } from '../fault.js';

export const trainingFaults: readonly Fault[] = [
  {
    fault: 'the training worker stops in the middle of a step',
    fires: [{ alert: 'BacktalkNothingLearned' }, { alert: 'BacktalkStepLong' }],
    break: async ({ machine }) => {
      await holdTraining(machine, true);
      return () => holdTraining(machine, false);
    },
  },
  awayFor('training-worker', { alert: 'BacktalkLedgerTroubled' }),
  {
    fault: 'the training worker’s disk takes no more than 1 KiB a file',
    fires: [{ alert: 'BacktalkBatchAbandoned' }],
    break: (scene) => {
      scene.limitFiles('training-worker', 1024);
      return () => scene.limitFiles('training-worker');
    },
  },
];

export const twoGatewayFaults: readonly Fault[] = [
  {
    fault: 'one of two gateways is cut off from the broker while versions come',
    fires: [{ alert: 'BacktalkGatewayBehind' }],
    break: ({ wire }) => {
      wire.cut();
      return () => wire.mend();
    },
  },
];
