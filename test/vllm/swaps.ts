// Swaps under load: clients stream and correct while versions are trained and swapped in; nobody fails, nobody is cut.
import { until } from '@backtalk/kit/testing';
import { mixedTurns } from '../loop/audit.js';
import { metric } from '../loop/controls.js';
import { startCrowd } from '../loop/crowd.js';
import { settleLearning } from '../loop/learning-switch.js';
import { failedOf, minute, type Exercise, type Finding, type Scene } from './exercise.js';

export interface SwapOptions {
  readonly swaps: number;
  readonly clients: number;
  readonly maxTokens: number;
  readonly seed: number;
  /** For all of them together. */
  readonly withinMinutes: number;
}

const settleMinutes = 10;
/** Beyond this there is nothing left to show. */
const failedMax = 20;

export function swapsUnderLoad(options: SwapOptions): Exercise {
  return async (scene) => {
    const { machine, book, ledger } = scene;
    const startedMs = performance.now();
    await talkUntilSwapped(scene, options);
    const seconds = (performance.now() - startedMs) / 1_000;
    await settleLearning(machine, book, settleMinutes * minute);
    const log = await book.read();
    const { completed, trained } = log;
    const stable = await numberOfStable(scene);
    const failed = failedOf(ledger);
    const mixed = mixedTurns(ledger, log);
    const unlabelled = ledger.filter(({ weights }) => weights === '');
    const versions = new Set(ledger.map(({ weights }) => weights));
    const untrainable = completed.filter(({ message }) => !message.trainable);
    return [
      finding(
        `${String(options.swaps)} swaps`,
        stable >= options.swaps,
        `${String(stable)} in ${seconds.toFixed(0)} s`,
      ),
      finding(
        'no request failed or was cut',
        failed.length === 0,
        `${String(failed.length)} of ${String(ledger.length)}`,
      ),
      finding(
        'the engine names one version from the first frame to the last, which is the one that was asked for',
        mixed.length + unlabelled.length === 0 && versions.size > 1,
        `${String(completed.length)} turns, ${String(versions.size)} versions`,
      ),
      finding('every answer can be trained on', untrainable.length === 0, `${String(untrainable.length)} cannot`),
      finding('every version came from a step', trained.length >= options.swaps, `${String(trained.length)} trained`),
      await loadTimes(scene),
    ];
  };
}

async function talkUntilSwapped(scene: Scene, { swaps, clients, maxTokens, seed, withinMinutes }: SwapOptions) {
  const { machine, ledger, output } = scene;
  const crowd = startCrowd({ gateway: machine.gateway, seed, clients, corrects: 1, streams: 0.8, maxTokens });
  let seen = -1;
  let answers = -1;
  const swapped = async () => {
    const stable = await numberOfStable(scene);
    if (stable !== seen || crowd.ledger.length >= answers + 10) {
      const failed = failedOf(crowd.ledger).length;
      output.progress(
        `version ${String(stable)} of ${String(swaps)} serves; ${String(crowd.ledger.length)} answers, ${String(failed)} failed`,
      );
      seen = stable;
      answers = crowd.ledger.length;
    }
    return stable >= swaps || failedOf(crowd.ledger).length > failedMax;
  };
  // A machine that is too slow is a finding, and no reason to keep the others back.
  const wait = { what: 'The last swap', timeoutMs: withinMinutes * minute, everyMs: 500 };
  await until(swapped, wait).catch(() => output.progress(`${String(withinMinutes)} minutes are over`));
  ledger.push(...(await crowd.stop()));
}

async function numberOfStable({ book }: Scene): Promise<number> {
  return Number((await book.stable()).replace('backtalk-v', ''));
}

/** How long the loader took for a version, on average. */
async function loadTimes({ machine }: Scene): Promise<Finding> {
  const name = 'backtalk_loader_prepare_seconds';
  const mean = async (phase: string) => {
    const label = `phase="${phase}"`;
    const sum = await metric(machine, 'loader', `${name}_sum`, label);
    return (sum / (await metric(machine, 'loader', `${name}_count`, label))).toFixed(2);
  };
  const [fetch, load, warmUp] = await Promise.all([mean('fetch'), mean('load'), mean('warm_up')]);
  const figure = `fetch ${fetch ?? '?'} s, load ${load ?? '?'} s, warm-up ${warmUp ?? '?'} s on average`;
  return finding('the loader prepares versions', Number(load) > 0, figure);
}

function finding(what: string, holds: boolean, figure: string): Finding {
  return { what, holds, figure };
}
