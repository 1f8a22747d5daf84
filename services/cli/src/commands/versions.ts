// `versions`: what was learned, step by step; `versions <name>`: from which words.
import { FactReader, isInForce, kvBucket } from '@backtalk/kit';
import {
  WeightsStaged_Stage,
  type BatchClosed,
  type BatchSample,
  type ComparedAnswer,
  type TurnJudged,
  type WeightsStaged,
  type WeightsTrained,
} from '@backtalk/proto/facts';
import { Routes } from '@backtalk/proto/weights';
import { withBroker } from '../connection.js';
import type { CommandContext } from '../shell.js';
import { cliErrors } from '../errors.js';
import type { Output } from '../output.js';
import { percent } from '../lesson-pull.js';
import { policyOf } from '../made-again.js';
import { ifReadable, oneLine, turnWords, type TurnWords } from '../turn-words.js';

interface VersionRow {
  readonly version: string;
  readonly parent: string;
  readonly batch: number;
  readonly stage: string;
  /** Whether new requests are answered by it. */
  readonly serving: boolean;
  readonly why: string;
  readonly trainedAt: string;
  readonly measurements: Readonly<Record<string, number>>;
}

async function readVersions(reader: FactReader, policy: string, serving: string): Promise<VersionRow[]> {
  const trained: { message: WeightsTrained; timeMs: number }[] = [];
  const staged = new Map<string, WeightsStaged>();
  const filter = { weightsTrained: { policy }, weightsStaged: { policy } };
  for await (const fact of reader.read(['weightsTrained', 'weightsStaged'], { filter })) {
    if (fact.name === 'weightsTrained') trained.push(fact);
    else staged.set(fact.message.version, withEarlier(fact.message, staged.get(fact.message.version)));
  }
  return trained.map(({ message, timeMs }) => {
    const stage = staged.get(message.version);
    const isServing = message.version === serving;
    // One that engines had let go of may answer again, after a rollback.
    const isBack = isServing && stage?.stage === WeightsStaged_Stage.STAGE_RETIRED;
    const name = stage === undefined ? 'trained' : stage.stage.replace('STAGE_', '').toLowerCase();
    return {
      version: message.version,
      parent: message.parent,
      batch: message.batch,
      stage: isBack ? 'stable' : name,
      serving: isServing,
      why: [...masksOf(message), isBack ? '' : (stage?.why ?? '')].filter((why) => why !== '').join('; '),
      trainedAt: new Date(timeMs).toISOString(),
      measurements: { ...message.report?.measurements, ...stage?.measurements },
    };
  });
}

/** A stage that measures nothing keeps what an earlier one found. */
function withEarlier(staged: WeightsStaged, before: WeightsStaged | undefined): WeightsStaged {
  return { ...staged, measurements: { ...before?.measurements, ...staged.measurements } };
}

/** Guards for which the step left its sampled terms out, rewards among them. */
function masksOf({ report }: WeightsTrained): string[] {
  const names = Object.keys(report?.measurements ?? {}).filter((name) => name.startsWith('guard_'));
  return names.map((name) => `no reward taken: ${name.replace('guard_', '')}`);
}

export async function listVersions({ connection, output }: CommandContext): Promise<void> {
  const { policy } = connection;
  const rows = await withBroker(connection, async (broker, blobs) => {
    const routes = await kvBucket(broker, 'routes', Routes).get(policy);
    return readVersions(new FactReader(broker, blobs), policy, routes?.value.stable ?? '');
  });
  for (const row of rows) output.value(row);
  if (rows.length === 0) {
    output.line('No version yet: the base model answers. Talk to it and correct it, or run: npx backtalk simulate');
    return;
  }
  const number = (row: VersionRow, name: string) => row.measurements[name]?.toFixed(2) ?? '';
  const held = ({ measurements: { cases, cases_lost: lost = 0 } }: VersionRow) =>
    cases === undefined ? '' : `${cases - lost}/${cases}`;
  output.table(
    ['version', 'parent', 'stage', 'step KL', 'drift', 'cases', 'seconds', 'trained', 'why'],
    rows.map((row) => [
      row.version,
      row.parent,
      row.serving ? `${row.stage}, answers` : row.stage,
      number(row, 'kl_step'),
      // Versions of before were held against the base alone.
      number(row, 'drift_told_kl') || number(row, 'drift_kl'),
      held(row),
      number(row, 'seconds'),
      row.trainedAt.slice(0, 19).replace('T', ' '),
      row.why,
    ]),
  );
  output.line('');
  output.line(
    'step KL: how far its step moved the answers that it trained on; drift: how far it is from what the base says, shown the lessons in force or not (both nats an answer).',
  );
  output.line('cases: turns once corrected that it was asked again: kept, of all.');
  output.line(`From which words: npx backtalk versions ${rows.at(-1)?.version ?? ''}`);
}

interface SampleRow extends TurnWords {
  readonly turn: string;
  readonly verdict: number;
  readonly effective: boolean;
  readonly hint: string;
  readonly votes: readonly number[];
  readonly advantage: number;
  /** Of an attempt at a task; null for a turn of none. */
  readonly attempt: { readonly step: number; readonly outcome: number; readonly reward: number } | null;
  readonly divergence: number | undefined;
  /** Its part of the step's gradient, 0 to 1. */
  readonly gradientShare: number | undefined;
  readonly answerReplaced: boolean;
  readonly dropped: string;
}

async function explainSample(reader: FactReader, sample: BatchSample, trained: WeightsTrained): Promise<SampleRow> {
  const { turn, tenant, user } = sample;
  const [words, judged] = await Promise.all([
    turnWords(reader, sample),
    ifReadable(reader.last('turnJudged', { tenant, user, turn, revision: sample.revision })),
  ]);
  const report = trained.report?.samples.find((row) => row.turn === turn);
  const judgement: TurnJudged | undefined = judged?.message;
  return {
    turn,
    verdict: sample.verdict,
    effective: sample.effective,
    ...words,
    // Where the training worker chose among several.
    hint: sample.otherHindsights[(report?.hintChosen ?? 0) - 1] ?? judgement?.hint ?? '',
    votes: (judgement?.votes ?? []).map(({ valid, verdict }) => (valid ? verdict : Number.NaN)),
    advantage: sample.advantage,
    attempt: attemptOf(sample, judgement),
    divergence: report?.divergence,
    gradientShare: report?.gradientShare,
    answerReplaced: report?.answerReplaced ?? false,
    dropped: report?.dropped ?? '',
  };
}

function attemptOf({ attempt }: BatchSample, judgement: TurnJudged | undefined): SampleRow['attempt'] {
  if (attempt === undefined) return null;
  const { step, reward } = attempt;
  return { step, outcome: judgement?.outcome?.score ?? Number.NaN, reward };
}

interface VersionParts {
  readonly trained: WeightsTrained;
  readonly batch: BatchClosed;
  readonly samples: readonly SampleRow[];
  readonly compared: readonly ComparedAnswer[];
}

function printVersion(output: Output, { trained, batch, samples, compared }: VersionParts): void {
  const rehearsed = batch.samples.length - samples.length;
  output.value({
    version: trained.version,
    parent: trained.parent,
    batch: batch.number,
    ...(batch.repeats === 0 ? {} : { repeats: batch.repeats }),
    lessons: batch.lessons,
    samples,
    rehearsed,
    compared,
  });
  const questions = rehearsed === 0 ? '' : ` and ${String(rehearsed)} questions of the trainer's own`;
  output.line(`${trained.version}: one step from ${trained.parent}, on ${String(samples.length)} turns${questions}`);
  if (batch.repeats > 0)
    output.line(`It repeats the step of batch ${String(batch.repeats)} without what was undone since.`);
  output.line('');
  output.line('Lessons in force:');
  for (const { text, state, hints } of batch.lessons.filter(isInForce)) {
    output.line(
      `  “${text}” (${state.replace('STATE_', '').toLowerCase()}, from ${String(hints)} hint${hints === 1 ? '' : 's'})`,
    );
  }
  output.line('');
  for (const row of samples) {
    output.line(`${row.verdict > 0 ? '+1' : row.verdict < 0 ? '−1' : ' 0'}  ${oneLine(row.question)}`);
    if (row.gradientShare !== undefined && row.gradientShare > 0)
      output.line(`      pulled    ${percent(row.gradientShare)} of the step`);
    if (row.attempt !== null) output.line(`      attempt   ${attemptLine(row.attempt, row.advantage)}`);
    output.line(`      answered  ${oneLine(row.answer)}`);
    if (row.answerReplaced)
      output.line(
        '      replaced  by an answer that the policy gave in the step; this one was trained on as a teacher’s, if at all',
      );
    output.line(`      then      ${row.act === '' ? oneLine(row.nextState) : `(${row.act})`}`);
    if (row.hint !== '') output.line(`      hint      ${oneLine(row.hint)}`);
    if (row.dropped !== '') output.line(`      dropped   ${row.dropped}`);
  }
  if (compared.length === 0) return;
  output.line('');
  output.line('Asked the same, before and after:');
  for (const { question, before, after } of compared) {
    output.line(`  ${question}`);
    output.line(`      before    ${oneLine(before)}`);
    output.line(`      after     ${oneLine(after)}`);
  }
}

function attemptLine({ step, outcome, reward }: NonNullable<SampleRow['attempt']>, advantage: number): string {
  const [of, worth, beside] = [outcome, reward, advantage].map((one) => (Number.isNaN(one) ? '?' : one.toFixed(2)));
  return `step ${String(step + 1)}, outcome ${of ?? ''}, reward ${worth ?? ''}, beside the others ${beside ?? ''}`;
}

/** Of whichever policy. */
export async function findStep(reader: FactReader, version: string): Promise<[WeightsTrained, BatchClosed]> {
  const policy = policyOf(version);
  let trained: WeightsTrained | undefined;
  for await (const { message } of reader.read(['weightsTrained'], { filter: { weightsTrained: { policy } } })) {
    if (message.version === version) trained = message;
  }
  if (trained === undefined)
    throw cliErrors.nothingFound({ what: `version ${version} (npx backtalk versions lists them)` });
  for await (const { message } of reader.read(['batchClosed'], { filter: { batchClosed: { policy } } })) {
    if (message.number === trained.batch) return [trained, message];
  }
  throw cliErrors.nothingFound({
    what: `batch ${String(trained.batch)} in the log any more: it may have named a person who is forgotten`,
  });
}

/** What the gate found that it answers otherwise than what served before it. */
async function comparedBy(reader: FactReader, policy: string, version: string): Promise<readonly ComparedAnswer[]> {
  let compared: readonly ComparedAnswer[] = [];
  for await (const { message } of reader.read(['weightsStaged'], { filter: { weightsStaged: { policy } } }))
    if (message.version === version && message.compared.length > 0) compared = message.compared;
  return compared;
}

export async function showVersion({ connection, output }: CommandContext, version: string): Promise<void> {
  const policy = policyOf(version);
  await withBroker(connection, async (broker, blobs) => {
    const reader = new FactReader(broker, blobs);
    const [trained, batch] = await findStep(reader, version);
    const samples: SampleRow[] = [];
    const turns = batch.samples.filter(({ question }) => question === 0);
    for (const sample of turns) samples.push(await explainSample(reader, sample, trained));
    const compared = await comparedBy(reader, policy, version);
    printVersion(output, { trained, batch, samples, compared });
  });
}
