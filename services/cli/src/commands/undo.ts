// `undo`: the policy is as if it had never been taught a lesson. The lesson is retired, the version before the first that was taught it
// answers again, and what else was learned since is learned again.
import { FactReader } from '@backtalk/kit';
import type { Lesson } from '@backtalk/proto/facts';
import { withBroker } from '../connection.js';
import { cliErrors } from '../errors.js';
import { retireLessons } from '../retire-lessons.js';
import type { CommandContext } from '../shell.js';
import { oneLine } from '../turn-words.js';
import { undoPlan, type PolicyFacts, type UndoPlan } from '../undo-plan.js';
import { rollBackTo } from './rollback.js';

export interface UndoFlags {
  readonly why: string;
  /** Only says what would be done. */
  readonly dryRun: boolean;
}

const answersShownMax = 6;

export async function undo({ connection, output }: CommandContext, id: string, flags: UndoFlags): Promise<void> {
  const plan = await withBroker(connection, async (broker, blobs) =>
    undoPlan(id, await factsOf(new FactReader(broker, blobs), connection.policy)),
  );
  if (plan === undefined) throw cliErrors.nothingFound({ what: `lesson ${id} (npx backtalk lessons lists them)` });
  const { to, burned } = plan;
  if (!flags.dryRun) {
    // First, so that no batch is closed for its sake meanwhile.
    await retireLessons(connection, plan.retired);
    if (to !== '') await rollBackTo(connection, to, `${flags.why}: ${id}`);
  }
  const { retired, again, compared } = plan;
  const names = (lessons: readonly Lesson[]) => lessons.map((lesson) => lesson.id);
  output.value({ lesson: id, done: !flags.dryRun, retired: names(retired), to, burned, again: names(again), compared });
  for (const line of told(plan, flags.dryRun)) output.line(line);
}

async function factsOf(reader: FactReader, policy: string): Promise<PolicyFacts> {
  const facts = { batches: [], trained: [], staged: [] } as { [K in keyof PolicyFacts]: PolicyFacts[K][number][] };
  const ids = { policy };
  const filter = { batchClosed: ids, weightsTrained: ids, weightsStaged: ids };
  for await (const fact of reader.read(['batchClosed', 'weightsTrained', 'weightsStaged'], { filter })) {
    if (fact.name === 'batchClosed') facts.batches.push(fact.message);
    else if (fact.name === 'weightsTrained') facts.trained.push(fact.message);
    else facts.staged.push(fact.message);
  }
  return facts;
}

function told({ retired, to, burned, again, compared }: UndoPlan, isDryRun: boolean): string[] {
  const quoted = (lessons: readonly Lesson[]) => lessons.map(({ text }) => `  “${oneLine(text)}”`);
  const lines = retired.length === 0 ? ['The lesson had ended before.'] : ['Retired:', ...quoted(retired)];
  if (to === '') lines.push('No version that answers was taught it: nothing else changes.');
  else lines.push(`${to} answers again; burned: ${burned.join(', ')}.`);
  if (again.length > 0)
    lines.push('Learned again, since the versions that were taught it are burned:', ...quoted(again));
  if (compared.length > 0) lines.push('', 'Asked the same, before and after:');
  for (const { question, before, after } of compared.slice(0, answersShownMax))
    lines.push(`  ${question}`, `      before    ${oneLine(before)}`, `      after     ${oneLine(after)}`);
  return isDryRun ? ['Nothing is done (--dry-run). It would be:', '', ...lines] : lines;
}
