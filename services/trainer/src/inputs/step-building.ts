// What the training worker is asked for a batch, from the fact, the log and an engine that renders: all that is read and asked, one sample
// after the other. The same fact gives the same request as long as engines render alike; where one renders a prompt otherwise than it
// was captured, the sample loses its teacher by name, so that no other template is ever trained on.
import { isDeepStrictEqual } from 'node:util';

import { harmlessHints, hintedMessages, inForce, withLessons } from '@backtalk/kit';
import type { BatchClosed, BatchSample } from '@backtalk/proto/facts';
import type { WeightsManifest } from '@backtalk/proto/weights';

import { hintsOf } from '../domain/lessons-in-force.js';
import { isOfTurn } from '../domain/rehearsal.js';
import type { StepPlan } from '../domain/step-plan.js';
import { batchBytesMax, bytesOf, sampleBytesMax } from '../domain/step-size.js';
import {
  rehearsedSample,
  stepOf,
  trainSample,
  type Built,
  type LeftOut,
  type Probes,
  type Prompts,
  type SampleSource,
  type Step,
  type Untaught,
} from '../domain/train-request.js';
import { trainerErrors } from '../errors.js';
import type { LedgerState } from '../outputs/ledger.js';
import type { Render } from '../outputs/prompt-renderer.js';
import type { StepStore } from '../outputs/step-store.js';
import type { WorkerBase } from '../outputs/training-worker.js';
import type { TrainerTools } from './trainer-tools.js';

export interface StepSource {
  readonly batch: BatchClosed;
  readonly plan: StepPlan;
  readonly parent: WeightsManifest | undefined;
  readonly base: WorkerBase;
}

/** A step of the past that is taken once more. */
export interface Replay {
  /** What the parent comes out as now, where that was made once more too. */
  readonly parent: WeightsManifest | undefined;
  /** What the step's recipe has otherwise than it had. */
  readonly recipe: string;
  /** The optimiser started afresh then: it does now, whatever the parent has again by now. */
  readonly afresh: boolean;
}

/** @param base of the worker that takes the step */
export async function stepSource(
  { store }: TrainerTools,
  { line }: Pick<LedgerState, 'line'>,
  batch: BatchClosed,
  base: WorkerBase,
  { parent: remade, recipe, afresh }: Replay = { parent: undefined, recipe: '', afresh: false },
): Promise<StepSource> {
  const plan = recipe === '' ? await store.planOf(batch) : await store.replayPlanOf(batch, recipe);
  const before =
    remade ?? (await withStateThatIsThere(store, await store.manifestOfVersion(batch.policy, batch.parent, line)));
  const parent = before !== undefined && afresh ? { ...before, trainingState: [] } : before;
  checkBase(batch, parent, base);
  return { batch, plan, parent, base };
}

/** Adapters are kept for longer than optimisers' states: from a version that was gone back to, the optimiser starts afresh. */
async function withStateThatIsThere(
  { blobs }: StepStore,
  parent: WeightsManifest | undefined,
): Promise<WeightsManifest | undefined> {
  if (parent === undefined) return undefined;
  const there = await Promise.all(parent.trainingState.map(({ digest }) => blobs.has(digest)));
  return there.every(Boolean) ? parent : { ...parent, trainingState: [] };
}

function checkBase({ parent: version }: BatchClosed, parent: WeightsManifest | undefined, base: WorkerBase): void {
  const known = parent?.baseDigest ?? '';
  if (known === '' || base.digest === '' || known === base.digest) return;
  throw trainerErrors.baseChanged({ version, baseModel: base.name });
}

export async function buildStep(tools: TrainerTools, source: StepSource, signal: AbortSignal): Promise<Step> {
  const { batch, plan, parent, base } = source;
  return tools.renderer.use(base.name, signal, async (render) => {
    const built = new Map<string, Built | LeftOut>();
    let room = batchBytesMax;
    // One at a time: what is decoded of a sample is let go before the next is read.
    for (const sample of batch.samples) {
      const made = isOfTurn(sample)
        ? await buildSample(tools, source, sample, render)
        : await buildRehearsal(source, sample, render);
      const bytes = typeof made === 'string' ? 0 : bytesOf(made.sample);
      const fits = bytes <= Math.min(room, sampleBytesMax);
      built.set(sample.turn, fits ? made : 'too_large');
      if (fits) room -= bytes;
    }
    return stepOf(batch, plan, parent, built, await probesOf(source, render));
  });
}

async function buildSample(
  { turns, events }: TrainerTools,
  { batch, plan, base }: StepSource,
  sample: BatchSample,
  render: Render,
): Promise<Built | LeftOut> {
  const source = await turns.source(sample);
  if (typeof source === 'string') return source;
  const given = plan.training.method === 'binary' ? [] : hintsOf(batch, sample);
  const hints = harmlessHints(given, base.controlTokens);
  if (hints.length < given.length) events.hintsRefused(batch.policy, given.length - hints.length);
  const captured = { plain: source.facts.completed?.promptIds ?? [], teacher: [], others: [] };
  const others = sample.otherHindsights.map((hindsight) =>
    harmlessHints(hintsOf(batch, { ...sample, hindsight }), base.controlTokens),
  );
  const prompts =
    hints.length === 0 ? captured : await promptsOf(source, { hints, others }, plan.training.hintPlace, render);
  const made = trainSample(sample, source, typeof prompts === 'string' ? captured : prompts);
  if (typeof made === 'string') return made;
  if (typeof prompts === 'string') return { sample: made, untaught: prompts };
  return { sample: made, untaught: prompts.teacher.length === 0 && given.length > 0 ? 'control_token' : '' };
}

/** Both the policy's answer and the teacher's are the worker's to give. */
async function buildRehearsal(
  { batch, plan, base }: StepSource,
  sample: BatchSample,
  render: Render,
): Promise<Built | LeftOut> {
  const content = plan.rehearsalQuestions[sample.question - 1];
  const hints = harmlessHints(hintsOf(batch, sample), base.controlTokens);
  if (content === undefined || hints.length === 0) return 'missing';
  const asked = [{ role: 'user', content }];
  const hinted = hintedMessages(asked, hints, plan.training.hintPlace, 0) ?? asked;
  const plain = await render({ messages: asked, tools: [], templateArguments: {} });
  const teacher = await render({ messages: hinted, tools: [], templateArguments: {} });
  // What engines refuse, or end on, they refuse each time: the step goes on without it.
  if (typeof plain === 'string' || typeof teacher === 'string') return 'missing';
  return { sample: rehearsedSample(sample, { plain, teacher }), untaught: '' };
}

interface Shown {
  readonly hints: readonly string[];
  /** What may be shown instead of them. */
  readonly others: readonly (readonly string[])[];
}

/** A reason where engines do not render the request as it was captured, or end on it. */
async function promptsOf(
  { facts: { completed }, messages, tools, templateArguments, humanMessage }: SampleSource,
  { hints, others }: Shown,
  place: string,
  render: Render,
): Promise<Prompts | Untaught> {
  const rendered = async (given: readonly unknown[] | undefined): Promise<readonly number[] | Untaught> => {
    if (given === undefined) return 'template_mismatch';
    const ids = await render({ messages: given, tools, templateArguments });
    if (ids === 'given_up') return 'prompt_given_up';
    return ids === 'refused' ? 'template_mismatch' : ids;
  };
  const shown = completed?.shown;
  const asked = shown === undefined ? messages : withLessons(messages, shown);
  const captured = await rendered(asked);
  if (typeof captured === 'string') return captured;
  if (!isDeepStrictEqual(captured, completed?.promptIds)) return 'template_mismatch';
  const plain = shown === undefined ? captured : await rendered(messages);
  if (typeof plain === 'string') return plain;
  const taught = (shown: readonly string[]) => rendered(hintedMessages(messages, shown, place, humanMessage));
  const teacher = await taught(hints);
  if (typeof teacher === 'string') return teacher;
  const instead: (readonly number[])[] = [];
  for (const other of others) {
    const ids = other.length < hints.length ? [] : await taught(other);
    // In its place all the same: which one is taken is said by number.
    instead.push(typeof ids === 'string' ? [] : ids);
  }
  return { plain, teacher, others: instead };
}

/** What engines refuse with the lessons in it is asked without them: then every answer is held against the base alone. */
async function probesOf({ batch, plan, base }: StepSource, render: Render): Promise<Probes> {
  const { probePrompts, training } = plan;
  const lessons = inForce(batch.lessons).map(({ text }) => text);
  const hints = harmlessHints(lessons, base.controlTokens);
  const plain: number[][] = [];
  const told: number[][] = [];
  for (const bytes of probePrompts) {
    const given: unknown = JSON.parse(new TextDecoder().decode(bytes));
    const messages: readonly unknown[] = Array.isArray(given) ? given : [];
    const ids = await render({ messages, tools: [], templateArguments: {} });
    if (typeof ids === 'string') throw trainerErrors.rendererAway({ baseModel: base.name });
    plain.push([...ids]);
    const hinted = hints.length === 0 ? undefined : hintedMessages(messages, hints, training.hintPlace, -1);
    const shown =
      hinted === undefined ? 'refused' : await render({ messages: hinted, tools: [], templateArguments: {} });
    if (typeof shown !== 'string') told.push([...shown]);
  }
  return { plain, told: told.length === plain.length ? told : [] };
}
