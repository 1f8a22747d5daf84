// Which faults are tried on which installation.
import { holdTraining } from '../loop/controls.js';
import type { Fault } from './fault.js';
import { captureFaults } from './faults/capture.js';
import { engineFaults, judgeFaults, twoEngineFaults } from './faults/engines.js';
import { presenceFaults, realTrainingFaults } from './faults/presence.js';
import { storeFaults } from './faults/stores.js';
import { stepFaults, trainingFaults, twoGatewayFaults } from './faults/training.js';
import { startScene, type Scene } from './scene.js';

export interface SceneOfFaults {
  readonly name: string;
  readonly start: () => Promise<Scene>;
  readonly faults: readonly Fault[];
}

/** A few turns a second, so that two busy cores keep up: what is late in time that runs faster looks stuck. */
const pace = { tokenMs: 50, answerTokens: 16 };
const judge = { BACKTALK_JUDGE_VOTES: '1' };
/** What is stored nowhere is counted where answers go without; elsewhere requests are refused. */
const gateway = { BACKTALK_CAPTURE: 'best-effort', BACKTALK_SPOOL_BYTES_MAX: String(2 * 1024 * 1024) };
const trainer = { BACKTALK_RECIPE_SET: 'effective=8,effectiveMin=8', BACKTALK_STEP_RETRY_MAX: '1s' };

export const scenes: readonly SceneOfFaults[] = [
  {
    name: 'one of each part',
    start: () => startScene({ pace, environment: { trainer, judge, gateway } }),
    faults: [...presenceFaults, ...engineFaults, ...captureFaults, ...storeFaults, ...stepFaults],
  },
  {
    name: 'one of each part, nothing trained yet',
    start: () =>
      startScene({ pace, environment: { trainer, judge }, before: (machine) => holdTraining(machine, true) }),
    faults: trainingFaults,
  },
  {
    name: 'two gateways and two engines',
    start: () => startScene({ pace, environment: { trainer, judge }, replicas: ['gateway-2', 'engine-2'] }),
    faults: [...twoGatewayFaults, ...twoEngineFaults],
  },
  {
    name: 'a judge pool with an engine of its own',
    start: () =>
      startScene({
        pace,
        environment: {
          trainer: { BACKTALK_RECIPE_SET: 'effective=2,effectiveMin=2' },
          judge: {
            BACKTALK_JUDGE_VOTES: '3',
            BACKTALK_JUDGE_VERSIONS_BEHIND: '3',
            BACKTALK_JUDGE_PLANTED_SHARE: '0.5',
            BACKTALK_JUDGE_VOTE_WAIT: '5s',
            BACKTALK_JUDGE_VOTE_CONCURRENCY: '4',
          },
        },
        hasJudgeEngine: true,
      }),
    faults: judgeFaults,
  },
  {
    name: 'a training worker with the model',
    start: () =>
      startScene({
        pace,
        training: 'real',
        // It is there, and rests: samples of a stand-in engine are no work for a model.
        environment: { judge, trainer: { BACKTALK_RECIPE_SET: 'effective=64,effectiveMin=64' } },
      }),
    faults: realTrainingFaults,
  },
];
