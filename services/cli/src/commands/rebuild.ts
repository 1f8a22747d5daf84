// `rebuild`: the trainer makes a version again from the log, the base and the recipe of its day, between batches, and with it parents
// whose files were swept. In: a version, how long to wait. Out: whether it is the same byte for byte, and what differs or is gone.
import { FactReader, jsonCodec, kvBucket, systemClock, versionParts, type Broker } from '@backtalk/kit';
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { withBroker } from '../connection.js';
import type { CommandContext } from '../shell.js';
import { cliErrors } from '../errors.js';

const askedCodec = jsonCodec(z.object({ id: z.string(), version: z.string() }));
const progressSchema = z.object({
  asked: z.string(),
  version: z.string(),
  state: z.enum(['running', 'equal', 'different', 'failed']),
  done: z.number(),
  of: z.number(),
  detail: z.string(),
});
type Progress = z.infer<typeof progressSchema>;
const progressCodec = jsonCodec(progressSchema);
const lookEveryMs = 250;

export async function rebuild({ connection, output, signal }: CommandContext, version: string, waitMs: number) {
  const policy = versionParts(version)?.policy;
  if (policy === undefined)
    throw cliErrors.badArgument({ name: 'version', value: version, wanted: 'a version, such as backtalk-v3' });
  const last = await withBroker(connection, async (broker) => {
    await checkTrained(broker, policy, version);
    const id = randomUUID();
    await kvBucket(broker, 'settings', askedCodec).put(`${policy}.rebuild`, { id, version });
    return untilEnded(broker, policy, { id, waitMs, signal }, ({ done, of }) => {
      if (of > 1) output.line(`${String(done)} of ${String(of)} versions are made.`);
    });
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

interface Waiting {
  readonly id: string;
  readonly waitMs: number;
  readonly signal: AbortSignal;
}

async function untilEnded(
  broker: Broker,
  policy: string,
  { id, waitMs, signal }: Waiting,
  onProgress: (progress: Progress) => void,
): Promise<Progress | undefined> {
  const bucket = kvBucket(broker, 'tries', progressCodec);
  const deadlineMs = systemClock.now() + waitMs;
  let shown = 0;
  for (;;) {
    const progress = (await bucket.get(`trainer.rebuild.${policy}`))?.value;
    const ours = progress?.asked === id ? progress : undefined;
    if (ours !== undefined && ours.state !== 'running') return ours;
    if (ours !== undefined && ours.done > shown) {
      shown = ours.done;
      onProgress(ours);
    }
    if (signal.aborted || systemClock.now() > deadlineMs) return ours;
    await systemClock.sleep(lookEveryMs, signal).catch(() => undefined);
  }
}
