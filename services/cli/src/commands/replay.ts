// `replay`: the trainer takes the steps of a row of versions once more, each upon what the one before comes out as then, with the recipe
// that they had or with another. In: first and last version, what is otherwise, a folder. Out: each step's figures beside those of the version
// that was made then, whether the bytes are the same, and the last version's adapter in the folder. Nothing that it makes answers anybody.
import { FactReader, isBacktalkError, kvBucket, type Broker } from '@backtalk/kit';
import { Routes, WeightsManifest } from '@backtalk/proto/weights';
import { withBroker } from '../connection.js';
import type { CommandContext } from '../shell.js';
import { cliErrors } from '../errors.js';
import { madeAgain, policyOf, type MadeAgain } from '../made-again.js';
import type { Output } from '../output.js';
import { checkNewFolder, writeVersion, type VersionSource } from '../version-folder.js';

export interface ReplayFlags {
  readonly from: string;
  readonly to?: string;
  readonly recipe: string;
  readonly save?: string;
  readonly wait: number;
}

type Figures = Readonly<Record<string, number>>;

interface ReplayRow {
  readonly version: string;
  readonly same: boolean;
  readonly then: Figures;
  readonly now: Figures;
}

/** Of a step's report: heading and name. */
const shownFigures = [
  ['loss', 'loss_opd'],
  ['reward loss', 'loss_binary'],
  ['step KL', 'kl_step'],
  ['KL to the base', 'kl_base'],
  ['entropy', 'entropy'],
  ['seconds', 'seconds'],
] as const;

export async function replay(context: CommandContext, { from, to, recipe, save, wait }: ReplayFlags): Promise<void> {
  const { connection, output, signal } = context;
  const policy = policyOf(from, '--from');
  if (to !== undefined && policyOf(to, '--to') !== policy)
    throw cliErrors.badArgument({ name: '--to', value: to, wanted: `a version of ${policy}, as --from is` });
  const folder = save === undefined ? undefined : await checkNewFolder(save, '--save');
  await withBroker(connection, async (broker, blobs) => {
    const stable = (await kvBucket(broker, 'routes', Routes).get(policy))?.value.stable ?? '';
    const version = to ?? (stable === '' ? from : stable);
    const trained = await figuresByVersion(broker, policy);
    for (const one of [from, version])
      if (!trained.has(one))
        throw cliErrors.nothingFound({ what: `trained version ${one} (npx backtalk versions lists them)` });
    const onProgress = ({ done, of, replayed }: MadeAgain) => {
      output.line(`${String(done)} of ${String(of)} steps are taken again: ${replayed.at(-1)?.version ?? ''}.`);
    };
    const last = await madeAgain(broker, { policy, version, from, recipe }, { waitMs: wait, signal, onProgress });
    if (last === undefined || last.state === 'running') throw cliErrors.replayPending({ from, to: version });
    if (last.state === 'failed') throw cliErrors.replayFailed({ from, to: version, why: last.detail });
    const rows = last.replayed.map((one): ReplayRow => {
      const { differing, measurements } = one;
      return {
        version: one.version,
        same: differing.length === 0,
        then: trained.get(one.version) ?? {},
        now: measurements,
      };
    });
    if (folder !== undefined) {
      await saveLast({ connection, blobs }, last.manifest, folder);
    }
    output.value({ from, to: version, recipe, state: last.state, versions: rows, folder });
    print(output, rows, { recipe, folder });
    if (recipe === '' && last.state === 'different') throw cliErrors.rebuildDiffers({ version, files: last.detail });
  });
}

/** More that is asked for takes the place of what a replay made. */
async function saveLast(source: VersionSource, digest: string, folder: string): Promise<void> {
  try {
    await writeVersion(source, WeightsManifest.decode(await source.blobs.get(digest)), folder, false);
  } catch (error) {
    if (!isBacktalkError(error, 'blob_missing') && !isBacktalkError(error, 'nothing_found')) throw error;
    throw cliErrors.nothingFound({ what: 'file of the replay any more: another one was asked for meanwhile' }, error);
  }
}

async function figuresByVersion(broker: Broker, policy: string): Promise<ReadonlyMap<string, Figures>> {
  const figures = new Map<string, Figures>();
  const filter = { weightsTrained: { policy } };
  for await (const { message } of new FactReader(broker).read(['weightsTrained'], { filter }))
    figures.set(message.version, message.report?.measurements ?? {});
  return figures;
}

function print(
  output: Output,
  rows: readonly ReplayRow[],
  { recipe, folder }: { readonly recipe: string; readonly folder: string | undefined },
): void {
  const told = (figures: Figures, name: string) => figures[name]?.toFixed(2).replace(/^-(0\.00)$/, '$1') ?? '–';
  const shown = shownFigures.filter(([, name]) => rows.some(({ then, now }) => name in then || name in now));
  output.line('');
  output.line(`Each figure: as it was, and as it comes out ${recipe === '' ? 'now' : `with ${recipe}`}.`);
  output.table(
    ['version', 'same bytes', ...shown.map(([heading]) => heading)],
    rows.map(({ version, same, then, now }) => [
      version,
      same ? 'yes' : 'no',
      ...shown.map(([, name]) => `${told(then, name)} → ${told(now, name)}`),
    ]),
  );
  if (folder !== undefined) output.line(`The last one is in ${folder}, as an adapter.`);
}
