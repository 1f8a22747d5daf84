// `replay`: the trainer takes the steps of a row of versions once more, each upon what the one before comes out as then, with the recipe
// that they had or with another, and with the judgements that they had or with those of the judge of now. In: first and last version, what is
// otherwise, a folder. Out: each step's figures beside those of the version that was made then, whether the bytes are the same, and the last
// version's adapter in the folder. Nothing that it makes answers anybody.
import { FactReader, isBacktalkError, kvBucket, type Broker, type RebuildProgress, type Replayed } from '@backtalk/kit';
import { Routes, WeightsManifest } from '@backtalk/proto/weights';
import { withBroker } from '../connection.js';
import type { CommandContext } from '../shell.js';
import { cliErrors } from '../errors.js';
import { judgedAgain } from '../judged-again.js';
import { madeAgain, policyOf } from '../made-again.js';
import type { Output } from '../output.js';
import { checkNewFolder, writeVersion, type VersionSource } from '../version-folder.js';

export interface ReplayFlags {
  readonly from: string;
  readonly to?: string;
  readonly recipe: string;
  /** True: anew; a word: the asking of before. */
  readonly judge?: true | string;
  readonly save?: string;
  readonly wait: number;
}

interface Otherwise {
  readonly recipe: string;
  /** Of a replay with the judge of now, the models that judged. */
  readonly judges: readonly string[] | undefined;
  readonly folder: string | undefined;
}

/** Of a step of rehearsed questions alone. */
const nothingAsked = { turns: 0, verdicts: 0, hints: 0, refused: 0 };

type Figures = Readonly<Record<string, number>>;

interface ReplayRow {
  readonly version: string;
  readonly same: boolean;
  readonly then: Figures;
  readonly now: Figures;
  readonly rejudged?: Replayed['rejudged'];
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

export async function replay(context: CommandContext, flags: ReplayFlags): Promise<void> {
  const { connection, output, signal } = context;
  const { from, to, recipe, judge: given, save, wait } = flags;
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
    const onProgress = ({ done, of, replayed }: RebuildProgress) => {
      output.line(`${String(done)} of ${String(of)} steps are taken again: ${replayed.at(-1)?.version ?? ''}.`);
    };
    const row = { policy, from, to: version };
    const judged =
      given === undefined
        ? undefined
        : await judgedAgain({ broker, blobs }, row, askingOf(given), { waitMs: wait, signal, output });
    const { asked } = judged ?? {};
    if (asked !== undefined) output.line(`The judge has answered; --judge ${asked} takes its answers once more.`);
    const wish = { policy, version, from, recipe, ...(asked === undefined ? {} : { judged: asked }) };
    const last = await madeAgain(broker, wish, { waitMs: wait, signal, onProgress });
    if (last === undefined || last.state === 'running') throw cliErrors.replayPending({ from, to: version });
    if (last.state === 'failed') {
      const kept = asked === undefined ? '' : ` What the judge answered is kept: --judge ${asked}.`;
      throw cliErrors.replayFailed({ from, to: version, why: `${last.detail}${kept}` });
    }
    const rows = last.replayed.map((one): ReplayRow => {
      const { differing, measurements, rejudged } = one;
      return {
        version: one.version,
        same: differing.length === 0,
        then: trained.get(one.version) ?? {},
        now: measurements,
        ...(rejudged === undefined ? {} : { rejudged }),
      };
    });
    if (folder !== undefined) {
      await saveLast({ connection, blobs }, last.manifest, folder);
    }
    const judges = judged?.models;
    output.value({ from, to: version, recipe, asked, judges, state: last.state, versions: rows, folder });
    print(output, rows, { recipe, judges, folder });
    if (recipe === '' && judged === undefined && last.state === 'different')
      throw cliErrors.rebuildDiffers({ version, files: last.detail });
  });
}

/** Undefined where it is to be a new one. */
function askingOf(given: true | string): string | undefined {
  if (given === true) return undefined;
  if (/^[\w-]{1,128}$/.test(given)) return given;
  throw cliErrors.badArgument({ name: '--judge', value: given, wanted: 'what an earlier replay --judge has named' });
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

function changesOf({ turns, verdicts, hints, refused }: NonNullable<ReplayRow['rejudged']> = nothingAsked): string[] {
  return [verdicts, hints, refused].map((count) => `${String(count)} of ${String(turns)}`);
}

async function figuresByVersion(broker: Broker, policy: string): Promise<ReadonlyMap<string, Figures>> {
  const figures = new Map<string, Figures>();
  const filter = { weightsTrained: { policy } };
  for await (const { message } of new FactReader(broker).read(['weightsTrained'], { filter }))
    figures.set(message.version, message.report?.measurements ?? {});
  return figures;
}

function print(output: Output, rows: readonly ReplayRow[], { recipe, judges, folder }: Otherwise): void {
  const told = (figures: Figures, name: string) => figures[name]?.toFixed(2).replace(/^-(0\.00)$/, '$1') ?? '–';
  const shown = shownFigures.filter(([, name]) => rows.some(({ then, now }) => name in then || name in now));
  output.line('');
  const others = [recipe, ...(judges === undefined ? [] : [`the judgements of ${judges.join(' and ') || 'no judge'}`])];
  const said = others.filter((part) => part !== '').join(' and ');
  output.line(`Each figure: as it was, and as it comes out ${said === '' ? 'now' : `with ${said}`}.`);
  const judged = judges === undefined ? [] : ['other verdicts', 'other hints', 'not judged again'];
  output.table(
    ['version', 'same bytes', ...judged, ...shown.map(([heading]) => heading)],
    rows.map(({ version, same, rejudged, then, now }) => [
      version,
      same ? 'yes' : 'no',
      ...(judges === undefined ? [] : changesOf(rejudged)),
      ...shown.map(([, name]) => `${told(then, name)} → ${told(now, name)}`),
    ]),
  );
  if (folder !== undefined) output.line(`The last one is in ${folder}, as an adapter.`);
}
