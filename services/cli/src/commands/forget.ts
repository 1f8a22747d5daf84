// `forget`: a person leaves the installation. What the trainer holds of them leaves the ledger, their turns are deleted, the newest version
// from before they were named answers again, and what the versions since were and answered is deleted too. What other people taught those
// versions is learned again, by the same steps without them. Each step may be repeated: stopped anywhere, the same command goes on.
import { closeSync, ftruncateSync, openSync, renameSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { asBacktalkError, deadLetters, type BacktalkError, sweepPayloads, systemClock } from '@backtalk/kit';
import { confirm } from '../confirm.js';
import { withBroker, type Connection } from '../connection.js';
import { deletePolicyFacts, deleteRows, type LogTools } from '../delete-rows.js';
import { cliErrors } from '../errors.js';
import { forgettingOf, isReady, type Answering, type Person, type PolicyForgetting } from '../forget-plan.js';
import { leaveLedgers, settlePolicy, type Forgetting } from '../forget-steps.js';
import { withKeyStore } from '../key-store.js';
import { asksForNoKey, hashedTenant, hashedUser, keylessUser, usualTenant } from '../owner.js';
import {
  lettersAbout,
  payloadsOf,
  policyLogs,
  saidOfOthers,
  turnsOf,
  type OnOthers,
  type PersonTurns,
} from '../person-facts.js';
import { counted, receiptLines, signed, signingKey, type PolicyReceipt, type Receipt } from '../receipt.js';
import type { Output } from '../output.js';
import type { CommandContext } from '../shell.js';
import type { TrimmedRow } from '../trim-plan.js';
import { deleteFilesOf, firstLoadable } from '../version-files.js';
import { replayedManifest, takeBackWish } from '../made-again.js';

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

/** As long as receipts become that name some hundred versions. */
const receiptBytes = 16_384;

interface Named {
  readonly user: string;
  readonly tenant: string;
}

interface Held {
  readonly turns: PersonTurns;
  readonly onOthers: OnOthers;
  readonly policies: readonly PolicyForgetting[];
  /** By policy: what answers once its versions are burned. */
  readonly answers: ReadonlyMap<string, Answering>;
  readonly letters: number;
}

export async function forget(context: CommandContext, user: string, flags: ForgetFlags): Promise<void> {
  const { connection, output, signal } = context;
  const { tenant = usualTenant } = flags;
  const person = { tenant: hashedTenant(connection, tenant), user: hashedUser(connection, user, tenant) };
  const key = flags.dryRun ? undefined : signingKey(connection, flags.key);
  await withBroker(connection, async (broker, blobs) => {
    const tools = { broker, blobs, output, signal };
    // What an earlier try was about to delete when it broke off: no fact tells of it any more.
    if (!flags.dryRun) await sweepPayloads(broker, blobs, 0);
    const held = await heldOf(tools, person);
    if (isNothing(held) || key === undefined) return sayHeld(context, held, { user, tenant }, flags.dryRun);
    const keys = await keysOf(connection, { user, tenant });
    const warning = keys.length === 0 ? [] : [`Keys still speak for them: npx backtalk keys revoke ${keys.join(', ')}`];
    const question = [...heldLines(held), ...warning, `Forget ${user} of ${tenant}, for good? Go on?`].join('\n');
    if (!flags.yes && !(await confirm(question))) throw cliErrors.confirmationNeeded();
    // Before anything is deleted: a receipt that cannot be written could not be had later.
    const paper = openReceipt(connection, flags.receipt);
    const work = { connection, tools, person, waitMs: flags.wait, said: held.onOthers.said };
    try {
      // The room that it will want: a full disk is found out now.
      writeSync(paper.handle, ' '.repeat(receiptBytes), 0);
      const done = await forgetIn(work, held);
      const at = new Date(systemClock.now()).toISOString();
      const receipt = { forgotten: { tenant, user }, at, ...done, stays: whatStays(at, keys, connection.keysSecret) };
      const value = signed(receipt, key);
      const isWritten = fillReceipt(paper, `${JSON.stringify(value, null, 2)}\n`, output);
      output.value({ done: true, file: isWritten ? paper.file : '', ...value });
      for (const line of receiptLines(receipt)) output.line(line);
      if (isWritten) output.line(`Receipt: ${paper.file} (npx backtalk receipt ${paper.file} checks it)`);
      else process.exitCode = 1;
    } finally {
      rmSync(partOf(paper.file), { force: true });
    }
  });
}

async function heldOf(tools: LogTools, person: Person): Promise<Held> {
  const onOthers = await saidOfOthers(tools, person);
  const all = [...(await policyLogs(tools))].map(([policy, log]) => forgettingOf(policy, person, log, onOthers.said));
  const policies = all.filter((one) => !isReady(one) || one.facts.length > 0);
  const answers = new Map<string, Answering>();
  for (const { policy, earlier } of policies) {
    const found = await firstLoadable(tools.blobs, earlier);
    if (found !== undefined) answers.set(policy, found);
  }
  const { length: letters } = await lettersAbout(tools, person);
  return { turns: await turnsOf(tools, person), onOthers, policies, answers, letters };
}

function isNothing({ turns, onOthers, policies, letters }: Held): boolean {
  return turns.rows.length + onOthers.rows.length + policies.length + letters === 0;
}

type Done = Omit<Receipt, 'forgotten' | 'at' | 'stays'>;

async function forgetIn(work: Forgetting, { turns, onOthers, policies }: Held): Promise<Done> {
  const { tools, person } = work;
  const sum = { turns: turns.turns, facts: 0, payloads: 0 };
  const deleteTurns = async (rows: readonly TrimmedRow[]) => {
    const { facts, payloads } = await deleteRows(tools, rows, { overwrite: true });
    sum.facts += facts;
    sum.payloads += payloads;
    if (tools.signal.aborted) throw cliErrors.forgetPending({ why: 'it was interrupted' });
  };
  // First: stopped after that, the trainer forgets them all the same.
  const named = new Set([...policies.map(({ policy }) => policy), ...turns.policies, ...onOthers.policies]);
  // The trainer takes in that they leave between the steps of a replay: no further one learns from them.
  for (const policy of named) await takeBackWish(tools.broker, policy);
  const asked = await leaveLedgers(work, [...named], policies);
  await deleteTurns(turns.rows);
  const done: PolicyReceipt[] = [];
  const left: { readonly policy: string; readonly error: BacktalkError }[] = [];
  for (const policy of named) {
    try {
      const ready = await settlePolicy(work, policy, asked.get(policy) ?? 0);
      const lessons = policies.find((one) => one.policy === policy)?.lessons ?? 0;
      if (ready !== undefined) done.push({ ...(await dropWhatLearned(tools, ready)), lessons, lost: [...ready.lost] });
    } catch (error) {
      // The others are seen to all the same.
      left.push({ policy, error: asBacktalkError(error) });
    }
  }
  // What services still worked on when it began; and last what tells which judgements of others hold their words.
  await deleteTurns((await turnsOf(tools, person)).rows);
  const [first] = left;
  if (first !== undefined && left.length === 1) throw first.error;
  if (first !== undefined) {
    const each = left.map(({ policy, error }) => `${policy} (${error.code})`);
    throw cliErrors.forgetPending({ why: `these policies are not through: ${each.join(', ')}` });
  }
  await deleteTurns((await saidOfOthers(tools, person)).rows);
  const letters = await lettersAbout(tools, person);
  for (const { sequence } of letters) await deadLetters(tools.broker).discard(sequence);
  return { ...sum, deadLetters: letters.length, policies: done };
}

/** Versions first, then the facts by which they are known, then what of those lies beside the log. */
async function dropWhatLearned(
  tools: LogTools,
  { policy, manifests, facts, learned, earlier }: PolicyForgetting,
): Promise<Omit<PolicyReceipt, 'lessons' | 'lost'>> {
  const { broker, blobs } = tools;
  const replayed = await replayedManifest(broker, policy);
  const theirs = new Set(manifests);
  const logs = [...(await policyLogs(tools)).values()];
  const all = logs.flatMap(({ trained }) => trained.map(({ message }) => message.manifestDigest));
  const others = all.filter((digest) => !theirs.has(digest));
  const files = await deleteFilesOf(blobs, [...manifests, ...replayed], others);
  await deletePolicyFacts(tools, facts, await payloadsOf(tools, policy));
  return { policy, learned: [...learned], answers: earlier[0]?.version ?? '', facts: facts.length, files };
}

/** By the ids that `keys revoke` takes. */
async function keysOf(connection: Connection, { user, tenant }: Named): Promise<string[]> {
  if (connection.keysSecret !== '') return [];
  const keys = await withKeyStore(connection, (store) => store.list());
  return keys
    .filter(({ grant }) => grant.user === user && grant.tenant === tenant)
    .map(({ hash }) => hash.slice(0, 16));
}

function whatStays(at: string, keys: readonly string[], secret: string): string[] {
  return [
    `Backups, exports and copies of the log from before ${at}: this installation does not know where they are.`,
    'Ids of turns in reports of steps and in logs of processes; keyed hashes without text in working memory, until they expire.',
    'The id of a session that was open: it may be closed in the log later. Asked again, this command deletes that too.',
    'Turns on the disk of a gateway that the broker could not take (its spool), if there are any: asked again once they are stored, this command deletes them.',
    'Weights of those versions in the caches of training workers (BACKTALK_BLOB_CACHE_DIR), until newer ones take their place, and in folders of loaders (BACKTALK_ADAPTER_DIR) and memory of engines, until they are unloaded.',
    'That they said no to learning, if they did: it is kept, so that it holds.',
    ...(secret === ''
      ? []
      : [`Keys that speak for them in the Secret ${secret}, if there are any. What is said with them is new.`]),
    ...(keys.length === 0
      ? []
      : [`Keys that speak for them: npx backtalk keys revoke ${keys.join(', ')}. What is said with them is new.`]),
  ];
}

interface Paper {
  readonly file: string;
  readonly handle: number;
}

/** Where a receipt lies until it is whole. One that was left there by a command that was ended is of no use. */
const partOf = (file: string) => `${file}.part`;

function openReceipt({ data }: Connection, wanted: string | undefined): Paper {
  const name = `forgotten-${new Date(systemClock.now()).toISOString().replace(/[^0-9]/g, '')}.json`;
  const file = wanted ?? join(data ?? '.', name);
  try {
    closeSync(openSync(file, 'wx', 0o600));
    rmSync(file);
    return { file, handle: openSync(partOf(file), 'w', 0o600) };
  } catch (error) {
    throw cliErrors.badArgument({ name: '--receipt', value: file, wanted: 'a new file that can be written' }, error);
  }
}

/** What could not be written is printed: it cannot be had again. */
function fillReceipt({ file, handle }: Paper, text: string, output: Output): boolean {
  try {
    ftruncateSync(handle, Buffer.byteLength(text));
    writeSync(handle, text, 0);
    closeSync(handle);
    renameSync(partOf(file), file);
    return true;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    output.complain(`The receipt could not be written (${why}). It is:\n${text}`);
    return false;
  }
}

/** A person without turns and one who never was get the same answer. */
async function sayHeld(
  { connection, output }: CommandContext,
  held: Held,
  { user, tenant }: Named,
  isDryRun: boolean,
): Promise<void> {
  const { turns, onOthers, policies, answers, letters } = held;
  output.value({
    done: false,
    dryRun: isDryRun,
    turns: turns.turns,
    facts: turns.rows.length + onOthers.rows.length,
    deadLetters: letters,
    policies: policies.map(({ policy, lessons, learned, pending }) => ({
      policy,
      lessons,
      learned,
      to: answers.get(policy)?.version ?? '',
      pending,
    })),
  });
  if (!isNothing(held)) {
    for (const line of ['Nothing is done (--dry-run). It would be:', ...heldLines(held)]) output.line(line);
    return;
  }
  output.line(`Nothing is held of ${user} of ${tenant}.`);
  if (user !== keylessUser && (await asksForNoKey(connection)))
    output.line(`No key is asked for here: all that is said is said by ${keylessUser}.`);
}

function heldLines({ turns, onOthers, policies, answers, letters }: Held): string[] {
  const facts = counted(turns.rows.length + onOthers.rows.length, 'fact');
  const dead = letters === 0 ? '' : ` and ${counted(letters, 'dead letter')}`;
  return [
    `Deleted: ${counted(turns.turns, 'turn')} (${facts})${dead}`,
    ...policies.map((policy) => policyLine(policy, answers.get(policy.policy))),
  ];
}

function policyLine(
  { policy, lessons, learned, burns, earlier, pending }: PolicyForgetting,
  to: Answering | undefined,
): string {
  const versions = learned.length === 0 ? 'no version learned from them' : `learned from them: ${learned.join(', ')}`;
  const [nearest] = earlier;
  const swept =
    nearest === undefined || to === undefined || nearest.version === to.version
      ? ''
      : ` (${nearest.version} could, but its files were swept: npx backtalk rebuild ${nearest.version} makes them again)`;
  const answers =
    burns.length === 0
      ? ''
      : `; ${to?.version ?? ''} answers again${swept}, and what others taught since is learned again`;
  const making = pending === '' ? '' : `; ${pending}, which is being made, is waited for`;
  return `${policy}: ${counted(lessons, 'lesson')}; ${versions}${answers}${making}`;
}
