// `undo`: the policy is as if it had never been taught a lesson. The lesson is retired, the version before the first that was taught it
// answers again, and what else was learned since is learned again, by the same steps without the lesson.
import { FactReader, systemClock } from '@backtalk/kit';
import type { Lesson } from '@backtalk/proto/facts';
import { withBroker, type Connection } from '../connection.js';
import { cliErrors } from '../errors.js';
import { retireLessons } from '../retire-lessons.js';
import type { Output } from '../output.js';
import type { CommandContext } from '../shell.js';
import { oneLine } from '../turn-words.js';
import type { PolicyFacts } from '../policy-facts.js';
import { undoPlan, type SaidOfLesson, type UndoPlan } from '../undo-plan.js';
import { rollBackTo } from './rollback.js';

export interface UndoFlags {
  readonly why: string;
  /** Only says what would be done. */
  readonly dryRun: boolean;
  /** How long a version that was taught the lesson may take to be made and decided on, in milliseconds. */
  readonly wait: number;
}

const answersShownMax = 6;
const lookEveryMs = 1_000;

export async function undo(context: CommandContext, id: string, flags: UndoFlags): Promise<void> {
  const { connection, output } = context;
  const plan = await planOf(connection, id);
  if (flags.dryRun) return say(output, id, plan, { done: false });
  // First, so that no batch is closed for its sake meanwhile.
  await retireLessons(connection, plan.retired);
  const { to, compared, again } = await whenDecided(context, id, flags.wait);
  const burned = to === '' ? [] : (await rollBackTo(connection, to, `${flags.why}: ${id}`, { undone: true })).burned;
  say(output, id, { ...plan, to, compared, again, burned, pending: '' }, { done: true });
}

async function planOf(connection: Connection, id: string): Promise<UndoPlan> {
  const plan = await withBroker(connection, async (broker, blobs) => {
    const { said, ...facts } = await factsOf(new FactReader(broker, blobs), connection.policy);
    return undoPlan(id, facts, said);
  });
  if (plan === undefined) throw cliErrors.nothingFound({ what: `lesson ${id} (npx backtalk lessons lists them)` });
  return plan;
}

/** The plan, once the trainer knows that the lesson has ended, and no version is left in the making that was taught it. */
async function whenDecided(
  { connection, output, signal }: CommandContext,
  id: string,
  waitMs: number,
): Promise<UndoPlan> {
  const deadlineMs = systemClock.now() + waitMs;
  for (let said = ''; ;) {
    const plan = await planOf(connection, id);
    const { pending, retired } = plan;
    if (pending === '' && retired.length === 0) return plan;
    const why =
      pending === ''
        ? 'the trainer has not taken that in'
        : `${pending}, which was taught it, is being made or decided on`;
    if (why !== said) output.line(`Waiting: ${why}.`);
    said = why;
    if (signal.aborted || systemClock.now() > deadlineMs) throw cliErrors.undoPending({ why, lesson: id });
    await systemClock.sleep(lookEveryMs, signal).catch(() => undefined);
  }
}

function say(output: Output, id: string, plan: UndoPlan, { done }: { readonly done: boolean }): void {
  const { retired, again, compared, to, pending, burned } = plan;
  const names = (lessons: readonly Lesson[]) => lessons.map((lesson) => lesson.id);
  output.value({ lesson: id, done, retired: names(retired), to, pending, burned, again: names(again), compared });
  for (const line of told(plan, !done)) output.line(line);
}

interface UndoFacts extends PolicyFacts {
  readonly said: readonly SaidOfLesson[];
}

async function factsOf(reader: FactReader, policy: string): Promise<UndoFacts> {
  const facts = { batches: [], trained: [], staged: [], said: [] } as {
    [K in keyof UndoFacts]: UndoFacts[K][number][];
  };
  const ids = { policy };
  const filter = { batchClosed: ids, weightsTrained: ids, weightsStaged: ids, lessonChanged: ids };
  for await (const fact of reader.read(['batchClosed', 'weightsTrained', 'weightsStaged', 'lessonChanged'], {
    filter,
  })) {
    if (fact.name === 'batchClosed') facts.batches.push(fact.message);
    else if (fact.name === 'weightsTrained') facts.trained.push(fact.message);
    else if (fact.name === 'weightsStaged') facts.staged.push(fact.message);
    else facts.said.push(fact);
  }
  return facts;
}

function told({ retired, to, pending, burned, again, compared }: UndoPlan, isDryRun: boolean): string[] {
  const quoted = (lessons: readonly Lesson[]) => lessons.map(({ text }) => `  “${oneLine(text)}”`);
  const lines = retired.length === 0 ? ['The lesson had ended before.'] : ['Retired:', ...quoted(retired)];
  if (pending !== '') lines.push(`${pending}, which is being made or decided on, would be waited for.`);
  if (to === '') lines.push('No version that answers was taught it: nothing else changes.');
  else lines.push(`${to} answers again; burned: ${burned.join(', ')}.`);
  if (again.length > 0)
    lines.push('Learned again, by the steps of those versions without it (npx backtalk versions):', ...quoted(again));
  if (compared.length > 0) lines.push('', 'Asked the same, before and after:');
  for (const { question, before, after } of compared.slice(0, answersShownMax))
    lines.push(`  ${question}`, `      before    ${oneLine(before)}`, `      after     ${oneLine(after)}`);
  return isDryRun ? ['Nothing is done (--dry-run). It would be:', '', ...lines] : lines;
}
