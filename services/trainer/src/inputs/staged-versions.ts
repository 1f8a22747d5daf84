// The publisher's verdicts on versions. In: weightsStaged facts of one policy. Out: the line of versions at the desk.
// How long the way from words to weights was is told by the process that closed the batch.
// A step on a parent that has just been burned is stopped. Never stages anything itself.
import type { StoredFact } from '@backtalk/kit';
import { WeightsStaged_Stage } from '@backtalk/proto/facts';

import type { TrainerEvents } from '../events.js';
import type { Desk } from './desk.js';

export function stagedVersions(desk: Desk, events: TrainerEvents) {
  return async function onStaged({ message, sequence, timeMs }: StoredFact<'weightsStaged'>): Promise<void> {
    const { line } = await desk.openBooks();
    line.staged(message, sequence);
    if (desk.step !== undefined && line.isTainted(desk.step.parent)) desk.step.stop.abort();
    const { taught } = desk;
    if (message.stage === WeightsStaged_Stage.STAGE_STABLE && taught?.version === message.version) {
      for (const saidAtMs of taught.saidAtMs) events.lessonServed(desk.policy, (timeMs - saidAtMs) / 1_000);
      desk.taught = undefined;
    }
    desk.bell.ring();
  };
}
