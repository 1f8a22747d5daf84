// What the log holds of a person. In: a person, as subjects name them. Out: the rows of their turns and of what they said of others' answers,
// dead letters about them, and the facts of every policy, from which it follows what learned from them.
import { deadLetters, FactReader, idsOfSubject, type DeadLetter } from '@backtalk/kit';
import type { LogTools } from './delete-rows.js';
import type { Person, PolicyLog } from './forget-plan.js';
import { trimmedFacts, type TrimmedRow } from './trim-plan.js';

/** A mark goes after the turn that it marks. */
const turnFacts = [...trimmedFacts.filter((name) => name !== 'sampleTaken'), 'turnWithheld', 'sampleTaken'] as const;
const said = ['turnJudged', 'feedbackGiven'] as const;
const policyFacts = ['batchClosed', 'weightsTrained', 'weightsStaged', 'lessonChanged'] as const;

export interface PersonTurns {
  readonly turns: number;
  readonly rows: readonly TrimmedRow[];
  /** In which something of theirs was judged. */
  readonly policies: ReadonlySet<string>;
}

export async function turnsOf({ broker, blobs, signal }: LogTools, person: Person): Promise<PersonTurns> {
  const reader = new FactReader(broker, blobs);
  const { tenant, user } = person;
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
  const onOthers = {
    filter: { turnJudged: { tenant }, feedbackGiven: { tenant } },
    signal,
    onUnreadable: () => undefined,
  };
  for await (const { message, sequence } of reader.read(said, onOthers)) {
    if (message.giver !== user || message.user === user) continue;
    rows.push({ sequence, bytes: 0, payload: undefined });
    policies.add(message.policy);
  }
  return { turns: turns.size, rows: [...rows, ...marks], policies };
}

/** By policy, of all that the log knows. */
export async function policyLogs({ broker, blobs, signal }: LogTools): Promise<ReadonlyMap<string, PolicyLog>> {
  const logs = new Map<string, { [K in keyof PolicyLog]: PolicyLog[K][number][] }>();
  for await (const fact of new FactReader(broker, blobs).read(policyFacts, { signal })) {
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

/** They hold no text, but name the subject of a fact. */
export async function lettersAbout({ broker }: LogTools, { tenant, user }: Person): Promise<DeadLetter[]> {
  const letters = await deadLetters(broker).list();
  return letters.filter(({ fact: { subject } }) => subject.split('.').join(' ').includes(` ${tenant} ${user} `));
}
