// A training worker that is away, stands still, or cannot store what it made; and gateways that know different routes.
import { holdTraining, setFigures } from '../../loop/controls.js';
import { awayFor, type Fault } from '../fault.js';
import { resume } from '../operator.js';

/** The worker has no model: it speaks the real contract and says these figures of its steps. */
function stepsThatReport(figures: Readonly<Record<string, number>>, alerts: readonly string[]): Fault {
  const said = Object.entries(figures).map(([name, value]) => `${name} ${String(value)}`);
  return {
    fault: `a training worker without a model reports ${said.join(', ')}`,
    fires: alerts.map((alert) => ({ alert })),
    break: async ({ machine }) => {
      await setFigures(machine, figures);
      return async () => {
        await setFigures(machine, {});
        // Versions with such an entropy are burned, and after three training rests until an operator looked.
        await resume(machine);
      };
    },
  };
}

export const stepFaults: readonly Fault[] = [
  stepsThatReport({ v_mean: 1.6, ess: 0.2, logprob_bias: -0.4, logprob_difference: 0.4, masked_share: 0.3 }, [
    'BacktalkRatioOff',
    'BacktalkFewSamplesCount',
    'BacktalkLogprobsBiased',
    'BacktalkLogprobsDrift',
    'BacktalkTokensMasked',
  ]),
  stepsThatReport({ entropy: 0.3 }, ['BacktalkEntropyFalls']),
];

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
