// The engine's logprobs against the training worker's, on the same ids and under the weights that sampled them.
import { grpcClient } from '@backtalk/kit/grpc';
import { TrainingWorkerServiceDefinition } from '@backtalk/proto/training';
import { comparableTokens, logprobGap } from '../loop/logprob-gap.js';
import { ask, rowOf } from '../loop/talk.js';
import type { Exercise, Scene } from './exercise.js';

const tokensMin = 1_000;
const meanMax = 1e-4;
const answerTokens = 32;
const atOnce = 4;

export const logprobsAgree: Exercise = async (scene) => {
  const { machine, book, output } = scene;
  await talkUntilTokens(scene);
  output.progress('the training worker scores what the engine sampled');
  const address = `127.0.0.1:${String(machine.ports.grpc.trainingWorker)}`;
  const worker = grpcClient(TrainingWorkerServiceDefinition, address, { caller: 'trainer' });
  const { tokens, meanAbs } = await logprobGap(machine, worker, await book.read(), tokensMin).finally(() => {
    worker.close();
  });
  const figure = `mean |Δ logprob| ${meanAbs.toExponential(2)} over ${String(tokens)} tokens`;
  const what = `engine and trainer agree in float32, with an adapter on (≤ ${meanMax.toExponential(0)})`;
  return [{ what, holds: tokens >= tokensMin && meanAbs <= meanMax, figure }];
};

/** Answers of trained versions, until there are tokens enough to compare. */
async function talkUntilTokens({ machine, book, ledger, output }: Scene): Promise<void> {
  for (let count = 0; count < tokensMin; count = comparableTokens(await book.read())) {
    output.progress(`${String(count)} of ${String(tokensMin)} tokens to compare`);
    const questions = Array.from({ length: atOnce }, (_, at) => `Tell me about island number ${String(at)}.`);
    const asked = questions.map((content) => ({
      messages: [{ role: 'user' as const, content }],
      maxTokens: answerTokens,
    }));
    const heard = await Promise.all(asked.map((question) => ask(machine.gateway, question)));
    ledger.push(...heard.map((one) => rowOf('test', one)));
  }
}
