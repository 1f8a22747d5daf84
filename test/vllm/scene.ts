// The whole system with vLLM in place of the engine that comes with it; all else is what `npm start` runs.
// In: where progress is told. Out: a running machine, its log, and an empty ledger.
import { answersOk, type ProcessSpec } from '@backtalk/deploy';
import type { Output } from '../bench/output.js';
import { LogBook } from '../loop/fact-log.js';
import type { LedgerRow } from '../loop/ledger.js';
import { startTestMachine } from '../loop/machine.js';
import { vllmArguments, vllmCommand, vllmEnvironment } from './engine-program.js';
import { minute, type Scene } from './exercise.js';

const lengthMax = 1_024;
const readyWithinMs = 15 * minute;

/** Small batches of short answers, and patience: vLLM on one thread of a busy machine is slow. */
const environment = {
  loader: { BACKTALK_ENGINE_DEADLINE: '10m' },
  publisher: { BACKTALK_GATE_DEADLINE: '10m', BACKTALK_PREPARE_DEADLINE: '10m', BACKTALK_COMMIT_DEADLINE: '10s' },
  gateway: { BACKTALK_SILENCE_WAIT: '5m', BACKTALK_FIRST_BYTE_WAIT: '5m' },
  trainer: {
    BACKTALK_RECIPE_SET: 'effective=2,effectiveMin=2,anchorsPerEffective=0,answerTokensMax=16',
  },
};

export async function openScene(output: Output): Promise<Scene> {
  const ledger: LedgerRow[] = [];
  let builtin: ProcessSpec | undefined;
  const machine = await startTestMachine({
    engine: 'builtin',
    training: 'real',
    environment,
    adapt: (spec) => {
      if (spec.name === 'engine') builtin = spec;
      const adapted = spec.name === 'engine' ? withVllm(spec) : spec;
      return { ...adapted, readyWithinMs };
    },
  });
  if (builtin === undefined) throw new RangeError('The machine has no engine.');
  return { machine, book: await LogBook.open(machine), ledger, output, builtin: { ...builtin, readyWithinMs } };
}

function withVllm(spec: ProcessSpec): ProcessSpec {
  const port = spec.args.at(-1) ?? '';
  return {
    ...spec,
    command: vllmCommand,
    args: vllmArguments(port, lengthMax),
    env: { ...spec.env, ...vllmEnvironment },
    ready: () => answersOk(`http://127.0.0.1:${port}/health`),
  };
}
