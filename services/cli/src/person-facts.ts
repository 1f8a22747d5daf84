// What the log holds of a person. In: a person, as subjects name them. Out: the rows of their turns and of what they said of others' answers,
// dead letters about them, and the facts of policies, from which it follows what learned from them.
import { deadLetters, FactReader, idsOfSubject, type DeadLetter, type FactHeadersRow } from '@backtalk/kit';
import type { TurnJudged } from '@backtalk/proto/facts';
import type { LogTools } from './delete-rows.js';
import { revisionOf, type Person, type PolicyLog, type SaidOfOthers } from './forget-plan.js';
import { trimmedFacts, type TrimmedRow } from './trim-plan.js';

/** A mark goes after the turn that it marks. */
const turnFacts = [...trimmedFacts.filter((name) => name !== 'sampleTaken'), 'turnWithheld', 'sampleTaken'] as const;
const judging = ['turnJudged', 'feedbackGiven'] as const;
const policyFacts = ['batchClosed', 'weightsTrained', 'weightsStaged', 'lessonChanged'] as const;

export interface PersonTurns {
  readonly turns: number;
  readonly rows: readonly TrimmedRow[];
  /** In which something of theirs was judged. */
  readonly policies: ReadonlySet<string>;
}

export async function turnsOf({ broker, blobs, signal }: LogTools, person: Person): Promise<PersonTurns> {
  const reader = new FactReader(broker, blobs);
  const turns = new Set<string>();
  const policies = new Set<string>();
  const rows: TrimmedRow[] = [];
  const marks: TrimmedRow[] = [];
  const filter = Object.fromEntries(turnFacts.map((name) => [name, person]));
  for await (const { name, subject, sequence, bytes, payload } of reader.headers(turnFacts, { filter, signal })) {
    const ids: Readonly<Partial<Record<string, string | number>>> = idsOfSubject(name, subject);
    (name === 'sampleTaken' ? marks : rows).push({ sequence, bytes, payload });
    if (name !== 'turnWithheld' && ids['turn'] !== undefined) turns.add(String(ids['turn']));
    if (name === 'turnJudged') policies.add(String(ids['policy']));
  }
  return { turns: turns.size, rows: [...rows, ...marks], policies };
}

export interface OnOthers {
  readonly rows: readonly TrimmedRow[];
  readonly said: SaidOfOthers;
  readonly policies: ReadonlySet<string>;
}

/** What they said of answers that others were given, and the judgements that hold it, which others may have repeated since. */
export async function saidOfOthers({ broker, blobs, signal }: LogTools, person: Person): Promise<OnOthers> {
  const { tenant, user } = person;
  const reader = new FactReader(broker, blobs);
  const filter = { turnJudged: { tenant }, feedbackGiven: { tenant } };
  const given = new Set<string>();
  const sequences = new Set<number>();
  const said = new Set<string>();
  const policies = new Set<string>();
  const holds = ({ giver, evidence }: TurnJudged) =>
    giver === user || evidence.some(({ name, detail }) => name === 'feedback' && given.has(detail));
  for await (const fact of reader.read(judging, { filter, signal, onUnreadable: () => undefined })) {
    const { message, sequence, name } = fact;
    if (message.user === user) continue;
    if (name === 'feedbackGiven') {
      if (message.giver !== user) continue;
      given.add(fact.message.digest);
    } else {
      if (!holds(fact.message)) continue;
      said.add(revisionOf(fact.message));
    }
    sequences.add(sequence);
    policies.add(message.policy);
  }
  const rows: TrimmedRow[] = [];
  if (sequences.size > 0)
    for await (const { sequence, bytes, payload } of reader.headers(judging, { filter, signal }))
      if (sequences.has(sequence)) rows.push({ sequence, bytes, payload });
  return { rows, said, policies };
}

/** By policy, of all that the log knows or of one. */
export async function policyLogs(
  { broker, blobs, signal }: LogTools,
  only?: string,
): Promise<ReadonlyMap<string, PolicyLog>> {
  const logs = new Map<string, { [K in keyof PolicyLog]: PolicyLog[K][number][] }>();
  const filter = only === undefined ? {} : Object.fromEntries(policyFacts.map((name) => [name, { policy: only }]));
  for await (const fact of new FactReader(broker, blobs).read(policyFacts, { filter, signal })) {
    const { policy } = fact.message;
    const log = logs.get(policy) ?? { batches: [], trained: [], staged: [], changes: [] };
    logs.set(policy, log);
    if (fact.name === 'batchClosed') log.batches.push(fact);
    else if (fact.name === 'weightsTrained') log.trained.push(fact);
    else if (fact.name === 'weightsStaged') log.staged.push(fact);
    else log.changes.push(fact);
  }
  return logs;
}

/** Of a policy, the facts whose payloads lie beside the log. */
export async function payloadsOf(
  { broker, blobs, signal }: LogTools,
  policy: string,
): Promise<FactHeadersRow<(typeof policyFacts)[number]>[]> {
  const filter = Object.fromEntries(policyFacts.map((name) => [name, { policy }]));
  const beside: FactHeadersRow<(typeof policyFacts)[number]>[] = [];
  for await (const row of new FactReader(broker, blobs).headers(policyFacts, { filter, signal }))
    if (row.payload !== undefined) beside.push(row);
  return beside;
}

/** They hold no text, but name the subject of a fact. */
export async function lettersAbout({ broker }: LogTools, { tenant, user }: Person): Promise<DeadLetter[]> {
  const letters = await deadLetters(broker).list();
  return letters.filter(({ fact: { subject } }) => subject.split('.').join(' ').includes(` ${tenant} ${user} `));
}
