// The publisher's verdicts on versions. In: weightsStaged facts of one policy. Out: the line of versions at the desk.
// A step on a parent that has just been burned is stopped. Never stages anything itself.
import type { StoredFact } from '@backtalk/kit';

import type { Desk } from './desk.js';

export function stagedVersions(desk: Desk) {
  return async function onStaged({ message, sequence }: StoredFact<'weightsStaged'>): Promise<void> {
    const { line } = await desk.openBooks();
    line.staged(message, sequence);
    if (desk.step !== undefined && line.isTainted(desk.step.parent)) desk.step.stop.abort();
    desk.bell.ring();
  };
}
