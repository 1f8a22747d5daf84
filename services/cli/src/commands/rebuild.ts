// `rebuild`: the trainer makes a version again from the log, the base and the recipe of its day, between batches, and with it parents
// whose files were swept. In: a version, how long to wait. Out: whether it is the same byte for byte, and what differs or is gone.
import { FactReader, type Broker } from '@backtalk/kit';
import { withBroker } from '../connection.js';
import type { CommandContext } from '../shell.js';
import { cliErrors } from '../errors.js';
import { madeAgain, policyOf } from '../made-again.js';

export async function rebuild({ connection, output, signal }: CommandContext, version: string, waitMs: number) {
  const policy = policyOf(version);
  const onProgress = ({ done, of }: { done: number; of: number }) => {
    if (of > 1) output.line(`${String(done)} of ${String(of)} versions are made.`);
  };
  const last = await withBroker(connection, async (broker) => {
    await checkTrained(broker, policy, version);
    return madeAgain(broker, { policy, version }, { waitMs, signal, onProgress });
  });
  if (last === undefined || last.state === 'running') throw cliErrors.rebuildPending({ version });
  const { state, done, detail } = last;
  output.value({ version, state, made: done, detail });
  if (state === 'failed') throw cliErrors.rebuildFailed({ version, why: detail });
  if (state === 'different') throw cliErrors.rebuildDiffers({ version, files: detail });
  output.line(
    `${version} is the same byte for byte; ${done === 1 ? 'one version was' : `${String(done)} versions were`} made.`,
  );
}

async function checkTrained(broker: Broker, policy: string, version: string): Promise<void> {
  const filter = { weightsTrained: { policy } };
  for await (const { message } of new FactReader(broker).read(['weightsTrained'], { filter }))
    if (message.version === version) return;
  throw cliErrors.nothingFound({ what: `trained version ${version} (npx backtalk versions lists them)` });
}
