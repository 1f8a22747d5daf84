// `lessons`: what is being learned of a person's wishes, and their word on it. It asks the endpoint as any client does, so a key sees and
// changes what is its own: a person's lessons, or its whole tenant's where it speaks for all of it.
import { asBacktalkError, FactReader, personLessonsMax } from '@backtalk/kit';
import type { BatchClosed, WeightsTrained } from '@backtalk/proto/facts';
import { z } from 'zod';
import { withBroker } from '../connection.js';
import { askEndpoint } from '../endpoint.js';
import { cliErrors } from '../errors.js';
import { percent, pullOf } from '../lesson-pull.js';
import type { Output } from '../output.js';
import type { CommandContext } from '../shell.js';
import { oneLine, turnWords, type TurnWords } from '../turn-words.js';

export interface LessonFlags {
  /** Of the people whom the key speaks for. */
  readonly user?: string;
}

const lessonSchema = z.object({
  id: z.string(),
  policy: z.string(),
  text: z.string(),
  state: z.string(),
  /** Gateways of before do not say. */
  held: z.boolean().optional(),
  /** Gateways of before do not say. */
  shown: z.boolean().optional(),
  scope: z.string(),
  user: z.string().nullable(),
  hints: z.number(),
  wordings: z.array(z.string()),
  progress: z.number().nullable(),
  measured: z.array(z.object({ batch: z.number(), progress: z.number().nullable() })),
  asked_again: z
    .array(z.object({ question: z.string(), before: z.string(), after: z.string(), batch: z.number() }))
    .default([]),
  steps: z.number(),
  since_batch: z.number(),
  first_turn: z.string().nullable(),
  cases: z.number(),
  ended_by: z.string().nullable(),
  superseded_by: z.string().nullable(),
  covered_by: z.string().nullable(),
  waits_for: z.string().nullable().default(null),
  pending: z.boolean(),
});

type Lesson = z.infer<typeof lessonSchema>;

const turnsShownMax = 5;

const meanings: readonly (readonly [state: string, meaning: string])[] = [
  ['active', 'shown to every teacher of its samples, and being learned'],
  [
    'no room',
    'teachers are shown the newest twelve lessons, of at most 1,200 characters: to say it again, or to activate it, makes it the newest',
  ],
  [
    'learned',
    'followed without being asked for; still shown, so that it stays, and active again when a correction returns',
  ],
  [
    'in part',
    'answers follow it less than half of the way by its newest measurements: the model can be reminded of it',
  ],
  ['heard', 'heard in one session only: a lesson once another session brings it again, or once it is said to stand'],
  [
    'unteachable',
    'this model does not learn it, or being shown it changes nothing; looked at again after twenty versions',
  ],
  ['covered', 'another lesson does the same to the model, in clearer words: teachers are shown that one'],
  [
    'waiting',
    'not said to stand: another lesson of that person is learned first; then heard, until a correction asks again',
  ],
  [
    'retired',
    'ended by its person, by an operator, or by a newer lesson that says the opposite, or the same once more',
  ],
];

export const lessonsHelp = `
States:
${meanings.map(([state, meaning]) => `  ${state.padEnd(12)} ${meaning}`).join('\n')}
`;

export async function listLessons(context: CommandContext, { user }: LessonFlags): Promise<void> {
  const { connection, output } = context;
  const query = new URLSearchParams({ policy: connection.policy, ...(user === undefined ? {} : { user }) });
  const answer = await askEndpoint(context, 'The list', 'GET', `/lessons?${query.toString()}`);
  const { data } = z.object({ data: z.array(lessonSchema) }).parse(answer);
  for (const lesson of data) output.value(lesson);
  if (data.length === 0) {
    output.line(
      'No lesson yet. Say what you want, and that it is for always; or: npx backtalk lessons add "Use metric units."',
    );
    return;
  }
  output.table(
    ['lesson', 'state', 'for', 'heard', 'since batch', 'words'],
    data.map((lesson) => [
      lesson.id,
      stateOf(lesson),
      lesson.scope,
      String(lesson.hints),
      String(lesson.since_batch),
      lesson.text,
    ]),
  );
  const seen = meanings.filter(([state]) => data.some((lesson) => stateOf(lesson).includes(state)));
  output.line('');
  for (const [state, meaning] of seen) output.line(`${state}: ${meaning}`);
  if (isFull(data)) output.line(fullWords);
}

const fullWords = `${String(personLessonsMax)} lessons of one person are in force, the most that are held: a new one that is heard takes the place of the oldest; retire what is not needed.`;

function isFull(lessons: readonly Lesson[]): boolean {
  const inForce = lessons.filter(({ state }) => ['active', 'learned'].includes(state));
  const sameAs = (one: Lesson) => inForce.filter(({ scope, user }) => scope === one.scope && user === one.user);
  return inForce.some((one) => sameAs(one).length >= personLessonsMax);
}

export async function showLesson(context: CommandContext, id: string, { user }: LessonFlags): Promise<void> {
  const query = user === undefined ? '' : `?${new URLSearchParams({ user }).toString()}`;
  const answer = await askEndpoint(context, `Lesson ${id}`, 'GET', `/lessons/${encodeURIComponent(id)}${query}`);
  const lesson = lessonSchema.parse(answer);
  const receipt = await receiptOf(context, lesson);
  const pulled = [...receipt.pulls].map(([batch, share]) => ({ version: receipt.versions.get(batch), batch, share }));
  context.output.value({ ...lesson, taught: receipt.taught, pulled });
  printLesson(context.output, lesson);
  printReceipt(context.output, lesson, receipt);
}

/** The turns that were corrected for a lesson's sake, newest first, and which version each batch made. */
interface Receipt {
  readonly taught: readonly (TurnWords & { readonly turn: string })[];
  readonly versions: ReadonlyMap<number, string>;
  /** By batch, its part of the step, 0 to 1. */
  readonly pulls: ReadonlyMap<number, number>;
  /** Why the log says nothing. */
  readonly missing: string;
}

/** The endpoint tells of no turn but what `asked_again` holds: the others are the log's, which a key may not read. */
async function receiptOf({ connection }: CommandContext, { id, policy }: Lesson): Promise<Receipt> {
  const versions = new Map<number, string>();
  try {
    return await withBroker(connection, async (broker, blobs) => {
      const reader = new FactReader(broker, blobs);
      const trained: WeightsTrained[] = [];
      const batches: BatchClosed[] = [];
      const filter = { weightsTrained: { policy }, batchClosed: { policy } };
      for await (const fact of reader.read(['weightsTrained', 'batchClosed'], { filter })) {
        if (fact.name === 'batchClosed') batches.push(fact.message);
        else trained.push(fact.message);
      }
      for (const { batch, version } of trained) versions.set(batch, version);
      const cases = batches.at(-1)?.lessons.find((one) => one.id === id)?.cases ?? [];
      const newest = cases.toReversed().slice(0, turnsShownMax);
      const taught = await Promise.all(
        newest.map(async (ids) => ({ turn: ids.turn, ...(await turnWords(reader, ids)) })),
      );
      return { taught, versions, pulls: pullOf(id, batches, trained), missing: '' };
    });
  } catch (thrown) {
    return { taught: [], versions, pulls: new Map(), missing: asBacktalkError(thrown).message };
  }
}

function printReceipt(
  output: Output,
  { measured, asked_again: again }: Lesson,
  { taught, versions, pulls, missing }: Receipt,
): void {
  const nameOf = (batch: number) => versions.get(batch) ?? `batch ${String(batch)}`;
  if (measured.length > 0) {
    const shares = measured.map(
      ({ batch, progress }) => `${nameOf(batch)} ${progress === null ? '–' : progress.toFixed(2)}`,
    );
    output.line(`  by version ${shares.join(' · ')}`);
  }
  if (pulls.size > 0) {
    const shares = [...pulls].map(([batch, share]) => `${nameOf(batch)} ${percent(share)}`);
    output.line(`  of the step ${shares.join(' · ')}`);
  }
  if (missing !== '') output.line(`  Its turns are in the log, which cannot be read from here: ${missing}`);
  if (taught.length > 0) {
    output.line('');
    output.line('Said to these answers, newest first:');
  }
  for (const { turn, question, answer, nextState, act } of taught) {
    output.line(`  ${oneLine(question)}  (${turn})`);
    output.line(`      answered  ${oneLine(answer)}`);
    output.line(`      then      ${act === '' ? oneLine(nextState) : `(${act})`}`);
  }
  if (again.length > 0) {
    output.line('');
    output.line(`Asked again of ${nameOf(again[0]?.batch ?? 0)}, shown nothing:`);
  }
  for (const { question, before, after } of again) {
    output.line(`  ${oneLine(question)}`);
    output.line(`      before    ${oneLine(before)}`);
    output.line(`      now       ${oneLine(after)}`);
  }
}

export async function addLesson(
  context: CommandContext,
  words: readonly string[],
  { user }: LessonFlags,
): Promise<void> {
  const body = { text: words.join(' '), policy: context.connection.policy, user };
  const answer = await askEndpoint(context, 'The lesson', 'POST', '/lessons', body);
  said(context.output, lessonSchema.parse(answer), () => 'It is to be learned from now on.');
}

export async function editLesson(
  context: CommandContext,
  id: string,
  words: readonly string[],
  { user }: LessonFlags,
): Promise<void> {
  await change(context, id, { text: words.join(' '), user }, ({ state }) =>
    state === 'retired'
      ? `It stays ended, in these words: npx backtalk lessons activate ${id} takes it up.`
      : 'It is to be learned in these words.',
  );
}

export async function retireLesson(context: CommandContext, id: string, { user }: LessonFlags): Promise<void> {
  await change(
    context,
    id,
    { state: 'retired', user },
    () => 'No teacher is shown it any more, nor what it covers. What was learned of it fades.',
  );
}

export async function activateLesson(context: CommandContext, id: string, { user }: LessonFlags): Promise<void> {
  await change(context, id, { state: 'active', user }, ({ pending, covered_by: cover }) => {
    if (pending) return 'It is to be learned again.';
    return cover === null
      ? 'It is being learned.'
      : `It is being learned in the words of ${cover}, which does the same.`;
  });
}

/** Of the state that comes back. */
type Told = (lesson: Lesson) => string;

async function change(context: CommandContext, id: string, body: object, words: Told): Promise<void> {
  if (id === '') throw cliErrors.badArgument({ name: 'lesson', value: id, wanted: 'an id (npx backtalk lessons)' });
  const path = `/lessons/${encodeURIComponent(id)}`;
  said(context.output, lessonSchema.parse(await askEndpoint(context, `Lesson ${id}`, 'PATCH', path, body)), words);
}

function said(output: Output, lesson: Lesson, words: Told): void {
  output.value(lesson);
  output.line(`${lesson.id}: “${lesson.text}”`);
  output.line(words(lesson));
}

const isInForce = (state: string) => state === 'active' || state === 'learned';

function stateOf({ state, held, shown, pending, covered_by: cover, waits_for: first }: Lesson): string {
  if (pending) return `${state} (soon)`;
  if (cover !== null) return `${state}, covered`;
  if (isInForce(state) && first === null && shown === false) return `${state}, no room`;
  if (state === 'learned' && held === false) return `${state}, in part`;
  return first === null ? state : `${state}, waiting`;
}

const counted = (count: number, what: string) => `${String(count)} ${what}${count === 1 ? '' : 's'}`;

function printLesson(output: Output, lesson: Lesson): void {
  const meaning = meanings.findLast(([state]) => stateOf(lesson).includes(state))?.[1] ?? '';
  output.line(`“${lesson.text}”`);
  output.line(`  state     ${stateOf(lesson)}${meaning === '' ? '' : `: ${meaning}`}`);
  output.line(`  since     batch ${String(lesson.since_batch)}`);
  output.line(`  for       ${lesson.scope === 'tenant' ? 'everyone of its tenant' : 'the person who said it'}`);
  output.line(
    `  heard     ${counted(lesson.hints, 'time')}${lesson.first_turn === null ? '' : `, first in ${lesson.first_turn}`}`,
  );
  if (lesson.cases > 0)
    output.line(
      `  cases     ${counted(lesson.cases, 'corrected turn')}; once it is learned, new versions are asked them again`,
    );
  if (lesson.covered_by !== null) output.line(`  covered   by ${lesson.covered_by}, which does the same`);
  if (lesson.waits_for !== null) output.line(`  waiting   for ${lesson.waits_for}, which is learned first`);
  if (lesson.ended_by !== null) {
    const by = lesson.superseded_by === null ? '' : `: ${lesson.superseded_by}`;
    output.line(`  ended     ${lesson.ended_by}${by}`);
  }
  for (const wording of lesson.wordings) output.line(`  also said “${wording}”`);
  if (lesson.progress !== null)
    output.line(
      `  progress  ${lesson.progress.toFixed(2)} of the way to the model that is shown it, after ${counted(lesson.steps, 'step')} of the optimiser`,
    );
}
