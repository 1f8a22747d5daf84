// `forget`: a person leaves the installation. Their turns are deleted, their lessons and all else that the trainer holds of them leave the
// ledger, the version before the first that learned from them answers again, and what those versions were and answered is deleted too.
// What other people taught those versions is learned again. Each step may be repeated: stopped anywhere, the same command goes on.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { deleteFacts, deadLetters, FactPublisher, FactReader, newId, systemClock } from '@backtalk/kit';
import { LessonChanged, LessonChanged_Action } from '@backtalk/proto/facts';
import { confirm } from '../confirm.js';
import { withBroker, type Connection } from '../connection.js';
import { deleteRows, type LogTools } from '../delete-rows.js';
import { cliErrors } from '../errors.js';
import { forgettingOf, isReady, type Person, type PolicyForgetting } from '../forget-plan.js';
import { withKeyStore } from '../key-store.js';
import type { Output } from '../output.js';
import { hashedTenant, hashedUser, usualTenant } from '../owner.js';
import { lettersAbout, policyLogs, turnsOf, type PersonTurns } from '../person-facts.js';
import { receiptLines, signed, signingKey, type PolicyReceipt, type Receipt } from '../receipt.js';
import type { CommandContext } from '../shell.js';
import { deleteFilesOf } from '../version-files.js';
import { rollBackTo } from './rollback.js';

export interface ForgetFlags {
  readonly tenant?: string;
  readonly dryRun: boolean;
  readonly yes: boolean;
  /** How long the trainer and a version in the making may take, in milliseconds. */
  readonly wait: number;
  /** File of the key that signs. */
  readonly key?: string;
  /** Where the receipt is written. */
  readonly receipt?: string;
}

const lookEveryMs = 1_000;
const why = 'a person is forgotten';

interface Held {
  readonly turns: PersonTurns;
  readonly policies: readonly PolicyForgetting[];
  readonly letters: readonly number[];
}

interface Work {
  readonly connection: Connection;
  readonly tools: LogTools;
  readonly person: Person;
  readonly deadlineMs: number;
}

export async function forget(context: CommandContext, user: string, flags: ForgetFlags): Promise<void> {
  const { connection, output, signal } = context;
  const { tenant = usualTenant } = flags;
  const person = { tenant: hashedTenant(connection, tenant), user: hashedUser(connection, user, tenant) };
  const key = flags.dryRun ? undefined : signingKey(connection, flags.key);
  await withBroker(connection, async (broker, blobs) => {
    const tools = { broker, blobs, output, signal };
    const held = await heldOf(tools, person);
    if (key === undefined || isNothing(held)) return sayHeld(output, held, { user, tenant, isDryRun: flags.dryRun });
    const question = `${heldLines(held).join('\n')}\nForget ${user} of ${tenant}, for good? Go on?`;
    if (!flags.yes && !(await confirm(question))) throw cliErrors.confirmationNeeded();
    const work = { connection, tools, person, deadlineMs: systemClock.now() + flags.wait };
    const done = await forgetIn(work, held);
    const at = new Date(systemClock.now()).toISOString();
    const receipt = {
      forgotten: { tenant, user },
      at,
      ...done,
      stays: await staysOf(connection, { user, tenant, at }),
    };
    keepReceipt(connection, output, receipt, key, flags.receipt);
  });
}

async function heldOf(tools: LogTools, person: Person): Promise<Held> {
  const letters = (await lettersAbout(tools, person)).map(({ sequence }) => sequence);
  return { turns: await turnsOf(tools, person), policies: await policiesOf(tools, person), letters };
}

/** Those that hold anything of theirs. */
async function policiesOf(tools: LogTools, person: Person): Promise<PolicyForgetting[]> {
  const all = [...(await policyLogs(tools))].map(([policy, log]) => forgettingOf(policy, person, log));
  return all.filter((one) => !isReady(one) || one.facts.length > 0 || one.learned.length > 0);
}

function isNothing({ turns, policies, letters }: Held): boolean {
  return turns.rows.length === 0 && policies.every(isOver) && letters.length === 0;
}

/** Its versions are burned, and nothing but their names is left. */
function isOver(policy: PolicyForgetting): boolean {
  return isReady(policy) && policy.facts.length === 0;
}

type Done = Omit<Receipt, 'forgotten' | 'at' | 'stays'>;

async function forgetIn(work: Work, held: Held): Promise<Done> {
  const { tools, person } = work;
  const sum = { turns: held.turns.turns, facts: 0, payloads: 0 };
  const deleteTurns = async ({ rows }: PersonTurns) => {
    const { facts, payloads } = await deleteRows(tools, rows, { overwrite: true });
    sum.facts += facts;
    sum.payloads += payloads;
    if (tools.signal.aborted) throw cliErrors.forgetPending({ why: 'it was interrupted' });
  };
  // First, so that nothing more is judged or learned of them.
  await deleteTurns(held.turns);
  const lessons = new Map(held.policies.map(({ policy, lessons: own }) => [policy, own]));
  await leaveLedgers(work, new Set([...held.turns.policies, ...lessons.keys()]));
  const policies: PolicyReceipt[] = [];
  for (const { policy } of await policiesOf(tools, person)) {
    const ready = await whenReady(work, policy);
    const files = await deleteFilesOf(tools.blobs, ready.manifests);
    await deleteFacts(tools.broker, ready.facts, { from: 'WEIGHTS', overwrite: true });
    const { learned, to: answers, facts } = ready;
    policies.push({
      policy,
      lessons: lessons.get(policy) ?? 0,
      learned: [...learned],
      answers,
      facts: facts.length,
      files,
    });
  }
  // What services still worked on when it began.
  await deleteTurns(await turnsOf(tools, person));
  const letters = await lettersAbout(tools, person);
  for (const { sequence } of letters) await deadLetters(tools.broker).discard(sequence);
  return { ...sum, deadLetters: letters.length, policies };
}

/** Each trainer that knows them takes in that they are forgotten. */
async function leaveLedgers(work: Work, policies: ReadonlySet<string>): Promise<void> {
  const { tools, person } = work;
  const publisher = new FactPublisher(tools.broker);
  const reader = new FactReader(tools.broker, tools.blobs);
  for (const policy of policies) {
    const change = { id: newId(), ...person, policy, action: LessonChanged_Action.ACTION_ERASE };
    const { sequence } = await publisher.publish('lessonChanged', LessonChanged.fromPartial(change));
    const isTaken = async () => {
      const newest = await reader.last('batchClosed', { policy });
      return (newest?.message.lessonsThrough ?? 0) >= sequence;
    };
    await waitUntil(work, isTaken, () => `the trainer of ${policy} has not taken in that they are forgotten`);
  }
}

/** Once no version is left in the making that learned from them, those that answer are burned. */
async function whenReady(work: Work, policy: string): Promise<PolicyForgetting> {
  const { connection, tools, person } = work;
  const look = async () => {
    const found = (await policiesOf(tools, person)).find((one) => one.policy === policy);
    if (found === undefined) throw cliErrors.nothingFound({ what: `policy ${policy}` });
    return found;
  };
  let found = await look();
  const isDecided = async () => {
    found = await look();
    return found.pending === '';
  };
  await waitUntil(work, isDecided, () => `${found.pending}, which learned from them, is being made or decided on`);
  if (found.burns.length === 0 && !found.isQuoted) return found;
  await rollBackTo({ ...connection, policy }, found.to, why, found.learned);
  await waitUntil(
    work,
    async () => isReady((found = await look())),
    () => `the trainer of ${policy} still names them`,
  );
  return found;
}

async function waitUntil(
  { tools, deadlineMs }: Work,
  isSo: () => Promise<boolean>,
  reason: () => string,
): Promise<void> {
  for (let said = ''; !(await isSo());) {
    if (said !== reason()) tools.output.line(`Waiting: ${reason()}.`);
    said = reason();
    if (tools.signal.aborted || systemClock.now() > deadlineMs) throw cliErrors.forgetPending({ why: said });
    await systemClock.sleep(lookEveryMs, tools.signal).catch(() => undefined);
  }
}

async function staysOf(
  connection: Connection,
  { user, tenant, at }: Record<'user' | 'tenant' | 'at', string>,
): Promise<string[]> {
  const keys = await withKeyStore(connection, (store) => store.list());
  const own = keys
    .filter(({ grant }) => grant.user === user && grant.tenant === tenant)
    .map(({ hash }) => hash.slice(0, 16));
  return [
    `Backups, exports and copies of the log from before ${at}: this installation does not know where they are.`,
    'Ids of turns in reports of steps and in logs of processes, and keyed hashes without text in working memory until they expire.',
    'Weights of those versions in the caches of training workers (BACKTALK_BLOB_CACHE_DIR), until newer ones take their place.',
    'That they said no to learning, if they did: it is kept, so that it holds.',
    ...(own.length === 0
      ? []
      : [`Keys that speak for them: npx backtalk keys revoke ${own.join(', ')}. What is said with them is new.`]),
  ];
}

function keepReceipt(
  { data }: Connection,
  output: Output,
  receipt: Receipt,
  key: Parameters<typeof signed>[1],
  file = join(data ?? '.', `forgotten-${receipt.at.replace(/[^0-9]/g, '')}.json`),
): void {
  const value = signed(receipt, key);
  writeFileSync(file, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600 });
  output.value({ done: true, file, ...value });
  for (const line of receiptLines(receipt)) output.line(line);
  output.line(`Receipt: ${file} (npx backtalk receipt ${file} checks it)`);
}

/** A person without turns and one who never was get the same answer. */
function sayHeld(
  output: Output,
  held: Held,
  { user, tenant, isDryRun }: { user: string; tenant: string; isDryRun: boolean },
): void {
  const { turns, policies, letters } = held;
  output.value({
    done: false,
    dryRun: isDryRun,
    turns: turns.turns,
    facts: turns.rows.length,
    deadLetters: letters.length,
    policies: policies
      .filter((one) => !isOver(one))
      .map(({ policy, lessons, learned, to, pending }) => ({ policy, lessons, learned, to, pending })),
  });
  if (isNothing(held)) output.line(`Nothing is held of ${user} of ${tenant}.`);
  else for (const line of ['Nothing is done (--dry-run). It would be:', ...heldLines(held)]) output.line(line);
}

function heldLines({ turns, policies, letters }: Held): string[] {
  return [
    `Deleted: ${String(turns.turns)} turns (${String(turns.rows.length)} facts)${letters.length === 0 ? '' : ` and ${String(letters.length)} dead letters`}`,
    ...policies.filter((one) => !isOver(one)).map(policyLine),
  ];
}

function policyLine({ policy, lessons, learned, burns, to, pending }: PolicyForgetting): string {
  const versions = learned.length === 0 ? 'no version learned from them' : `learned from them: ${learned.join(', ')}`;
  const answers = burns.length === 0 ? '' : `; ${to} answers again, and what others taught since is learned again`;
  const making = pending === '' ? '' : `; ${pending}, which is being made, is waited for`;
  return `${policy}: ${String(lessons)} lessons; ${versions}${answers}${making}`;
}
