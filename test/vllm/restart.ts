// The engine is killed under load and comes back: beside it a second replica, the built-in engine, takes over. Only what
// was in the dead engine's hands may fail; it is routed to again only when it holds every version and is warm.
import { until } from '@backtalk/kit/testing';
import { metric } from '../loop/controls.js';
import { startCrowd, type Crowd } from '../loop/crowd.js';
import { failedOf, minute, type Exercise, type Finding, type Scene } from './exercise.js';

const clients = 4;
const seed = 77;
const maxTokens = 12;
const noticedWithinMs = minute;
const backWithinMs = 15 * minute;
const answersWithinMs = 10 * minute;

export const restartUnderLoad: Exercise = async (scene) => {
  const { machine, output, builtin, ledger } = scene;
  output.progress('a second replica starts: the built-in engine');
  const second = await machine.addEngine(builtin);
  const crowd = startCrowd({ gateway: machine.gateway, seed, clients, corrects: 1, streams: 0.8, maxTokens });
  try {
    await until(() => answeredBy(scene, machine.engine, 0), {
      what: 'Answers of the engine',
      timeoutMs: answersWithinMs,
    });
    return await killAndAwait(scene, crowd, second);
  } finally {
    ledger.push(...(await crowd.stop()));
  }
};

async function killAndAwait(scene: Scene, crowd: Crowd, second: string): Promise<Finding[]> {
  const { machine, output, book } = scene;
  await until(() => crowd.talking === clients, { what: 'Requests in hand', timeoutMs: answersWithinMs, everyMs: 5 });
  output.progress('the engine is killed');
  const killedMs = Date.now();
  process.kill(-machine.pid('engine'), 'SIGKILL');
  await until(async () => !(await isReady(scene)), { what: 'The loader notices', timeoutMs: noticedWithinMs });
  const noticedMs = Date.now();
  output.progress('the loader has noticed; the engine starts again, and its versions are loaded');
  await until(() => isReady(scene), { what: 'The engine is ready again', timeoutMs: backWithinMs, everyMs: 200 });
  const readyMs = Date.now();
  output.progress('the engine is ready again; it must be asked again');
  await until(() => answeredBy(scene, machine.engine, readyMs), { what: 'Answers again', timeoutMs: answersWithinMs });
  const { completed, opened } = await book.read();
  const openedMs = new Map(opened.map(({ message, timeMs }) => [message.turn, timeMs]));
  const failed = failedOf(crowd.ledger);
  const later = failed.filter(({ turn }) => (openedMs.get(turn) ?? Infinity) > killedMs);
  const meanwhile = completed.filter(({ timeMs }) => timeMs > noticedMs && timeMs < readyMs);
  const byDead = meanwhile.filter(({ message }) => message.engine === machine.engine);
  const bySecond = meanwhile.filter(({ message }) => message.engine === second);
  const restarts = await metric(machine, 'loader', 'backtalk_loader_engine_restarts_total');
  const seconds = (ms: number) => `${((ms - killedMs) / 1_000).toFixed(1)} s`;
  return [
    {
      what: 'only requests in hand at the kill failed',
      holds: later.length === 0 && failed.length <= clients,
      figure: `${String(failed.length)} in hand, ${String(later.length)} later, of ${String(crowd.ledger.length)}`,
    },
    {
      what: 'the other replica answered meanwhile, and nobody was sent to the dead one',
      holds: bySecond.length > 0 && byDead.every(({ message }) => message.finishReason === ''),
      figure: `${String(bySecond.length)} answers`,
    },
    {
      what: 'the loader saw that versions were lost, loaded them again, and warmed the engine up',
      holds: restarts === 1,
      figure: `not ready after ${seconds(noticedMs)}, ready again after ${seconds(readyMs)}`,
    },
  ];
}

async function isReady({ machine }: Scene): Promise<boolean> {
  return (await metric(machine, 'loader', 'backtalk_loader_engine_ready')) === 1;
}

async function answeredBy({ book }: Scene, engine: string, sinceMs: number): Promise<boolean> {
  const { completed } = await book.read();
  return completed.some(({ message, timeMs }) => message.engine === engine && timeMs > sinceMs && message.trainable);
}
