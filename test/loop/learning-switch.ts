// Stops and goes on with learning, as an operator does, and waits until what had begun is decided.
// In: a machine and its log. Out: nothing; afterwards no batch closes until learning goes on.
import { learningSwitch } from '@backtalk/kit';
import { until } from '@backtalk/kit/testing';
import { WeightsStaged_Stage } from '@backtalk/proto/facts';
import { givingUpOf } from './given-up.js';
import type { LogBook } from './fact-log.js';
import type { TestMachine } from './machine.js';

export async function setPaused(machine: TestMachine, paused: boolean): Promise<void> {
  const broker = await machine.broker('cli');
  await learningSwitch(broker, 'backtalk').put({ paused });
  await broker.close();
}

/** No batch closes any more, and every version that was begun serves, is burned, or will never be. */
export async function settleLearning(machine: TestMachine, book: LogBook, timeoutMs: number): Promise<void> {
  await setPaused(machine, true);
  const isSettled = async () => {
    const { batches, staged } = await book.read();
    const begun = batches.filter(({ message }) => message.samples.length > 0);
    const decisions = staged.filter(({ message }) => message.stage !== WeightsStaged_Stage.STAGE_CANDIDATE);
    const decided = new Set(decisions.map(({ message }) => message.version));
    return begun.every((batch) => decided.has(batch.message.version) || givingUpOf(batches, batch) !== undefined);
  };
  await until(isSettled, { what: 'The last step is decided', timeoutMs, everyMs: 250 });
}
