// `versions burn`: a trained version that is neither served nor refused is given up, so that training, `undo` and `forget` wait for it no longer.
import { policyOf } from '../made-again.js';
import { askPublisher } from '../publisher-call.js';
import type { CommandContext } from '../shell.js';

const burnWithinMs = 30_000;

export interface BurnFlags {
  readonly why: string;
}

export async function burnVersion(
  { connection, output }: CommandContext,
  version: string,
  { why }: BurnFlags,
): Promise<void> {
  const request = { policy: policyOf(version), version, why };
  await askPublisher(connection, (publisher) => publisher.burn(request, { deadlineMs: burnWithinMs }));
  output.value({ version, burned: true, why });
  output.line(`${version} is burned, and never serves. Training goes on from the version that answers.`);
}
