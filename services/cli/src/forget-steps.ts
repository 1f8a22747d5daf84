// What services have to do before a person's facts may go: the trainer lets go of them, and the publisher burns what learned from them.
import { FactPublisher, FactReader, newId, systemClock, versionName } from '@backtalk/kit';
import { LessonChanged, LessonChanged_Action } from '@backtalk/proto/facts';
import { isLearningPaused } from './commands/learning.js';
import { rollBackTo } from './commands/rollback.js';
import type { Connection } from './connection.js';
import type { LogTools } from './delete-rows.js';
import { cliErrors } from './errors.js';
import {
  forgettingOf,
  isReady,
  notRepeatedYet,
  type Person,
  type PolicyForgetting,
  type SaidOfOthers,
} from './forget-plan.js';
import { policyLogs } from './person-facts.js';
import { firstLoadable } from './version-files.js';

const lookEveryMs = 1_000;
/** So often the trainer may name them again, since a judgement of theirs was still under way. */
const roundsMax = 5;
const why = 'a person is forgotten';

export interface Forgetting {
  readonly connection: Connection;
  readonly tools: LogTools;
  readonly person: Person;
  readonly said: SaidOfOthers;
  /** For each thing that is waited for, in milliseconds. */
  readonly waitMs: number;
}

interface Settled extends PolicyForgetting {
  /** Versions whose other steps are not taken once more. */
  readonly lost: readonly string[];
}

/** Asks the trainer of each policy. Out: by policy, where the last word of it stands in the log. */
export async function leaveLedgers(
  { tools, person }: Forgetting,
  policies: readonly string[],
  plans: readonly PolicyForgetting[],
): Promise<ReadonlyMap<string, number>> {
  const publisher = new FactPublisher(tools.broker);
  const asked = new Map<string, number>();
  for (const policy of policies) {
    const shared = plans.find((one) => one.policy === policy)?.shared ?? [];
    for (const lesson of ['', ...shared]) {
      const change = { id: newId(), ...person, policy, action: LessonChanged_Action.ACTION_ERASE, lesson };
      const { sequence } = await publisher.publish('lessonChanged', LessonChanged.fromPartial(change));
      asked.set(policy, sequence);
    }
  }
  return asked;
}

/**
 * Once no version is left in the making that learned from them, those that answer are burned, and what others taught them is taught again.
 *
 * @param asked where the trainer was asked to forget them
 * @returns what may go then; undefined where the policy holds nothing of theirs
 */
export async function settlePolicy(work: Forgetting, policy: string, asked: number): Promise<Settled | undefined> {
  const first = await planOf(work, policy);
  if (first !== undefined && (first.isNamed || first.burns.length > 0)) await untilTaken(work, policy, asked);
  let lost: readonly string[] | undefined;
  for (let round = 1; round <= roundsMax; round += 1) {
    let found = await planOf(work, policy);
    if (found === undefined) return undefined;
    if (isReady(found) && lost !== undefined) return { ...found, lost };
    if (isReady(found)) {
      lost = await othersRepeated(work, found);
      continue;
    }
    lost = undefined;
    if (found.isNamed) {
      const again = await leaveLedgers(work, [policy], [found]);
      await untilTaken(work, policy, again.get(policy) ?? 0);
    }
    const isDecided = async () => {
      found = await planOf(work, policy);
      return found === undefined || found.pending === '';
    };
    await waitUntil(
      work,
      isDecided,
      () => `${found?.pending ?? ''}, which learned from them, is being made or decided on`,
    );
    if (found !== undefined && (found.burns.length > 0 || found.isQuoted)) await burn(work, found);
  }
  throw cliErrors.forgetPending({ why: `the trainer names them again and again: something is still said by them` });
}

/**
 * Before the batches that name them go, the trainer closes each once more with what others taught. Out: the versions whose batch it did not,
 * since learning rests.
 */
async function othersRepeated(
  { tools, waitMs }: Forgetting,
  { policy, named }: PolicyForgetting,
): Promise<readonly string[]> {
  let deadlineMs = systemClock.now() + waitMs;
  for (let before = 0; ;) {
    const log = (await policyLogs(tools, policy)).get(policy);
    // The other batches stay in the log: they are repeated whenever learning goes on.
    const left = log === undefined ? [] : notRepeatedYet(log).filter((version) => named.includes(version));
    if (left.length === 0) return left;
    if (tools.signal.aborted) throw cliErrors.forgetPending({ why: 'it was interrupted' });
    const isPaused = await isLearningPaused(tools.broker, policy);
    if (isPaused || systemClock.now() > deadlineMs) {
      tools.output.line(
        `Learning of ${policy} ${isPaused ? 'is paused' : 'rests'}: ${left.join(', ')} are not repeated.`,
      );
      return left;
    }
    if (left.length !== before) {
      tools.output.line(`Waiting: ${policy} takes the steps of ${left.join(', ')} once more, without them.`);
      // Each may take as long as anything else that is waited for.
      deadlineMs = systemClock.now() + waitMs;
    }
    before = left.length;
    await systemClock.sleep(lookEveryMs, tools.signal).catch(() => undefined);
  }
}

async function burn(
  { connection, tools }: Forgetting,
  { policy, burns, earlier, learned }: PolicyForgetting,
): Promise<void> {
  // Where none of them answers, only what they answered is to go.
  const to = burns.length === 0 ? earlier[0] : await firstLoadable(tools.blobs, earlier);
  await rollBackTo({ ...connection, policy }, to?.version ?? versionName(policy, 0), why, {
    forgotten: learned,
    undone: true,
  });
}

async function planOf({ tools, person, said }: Forgetting, policy: string): Promise<PolicyForgetting | undefined> {
  const log = (await policyLogs(tools, policy)).get(policy);
  return log === undefined ? undefined : forgettingOf(policy, person, log, said);
}

async function untilTaken(work: Forgetting, policy: string, sequence: number): Promise<void> {
  const reader = new FactReader(work.tools.broker, work.tools.blobs);
  const isTaken = async () => {
    const newest = await reader.last('batchClosed', { policy });
    return (newest?.message.lessonsThrough ?? 0) >= sequence;
  };
  await waitUntil(
    work,
    isTaken,
    () => `no trainer of ${policy} has taken in that they are forgotten (is it still served?)`,
  );
}

async function waitUntil(
  { tools, waitMs }: Forgetting,
  isSo: () => Promise<boolean>,
  reason: () => string,
): Promise<void> {
  const deadlineMs = systemClock.now() + waitMs;
  for (let said = ''; !(await isSo());) {
    if (said !== reason()) tools.output.line(`Waiting: ${reason()}.`);
    said = reason();
    if (tools.signal.aborted || systemClock.now() > deadlineMs) throw cliErrors.forgetPending({ why: said });
    await systemClock.sleep(lookEveryMs, tools.signal).catch(() => undefined);
  }
}
