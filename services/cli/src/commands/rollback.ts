// `rollback`: the version before this one answers again, at once, or one that answered earlier; all since are burned. Their lessons are
// learned again, or retired.
import { setTimeout as delay } from 'node:timers/promises';
import { FactReader, isBacktalkError, kvBucket, systemClock } from '@backtalk/kit';
import type { RollbackResponse } from '@backtalk/proto/control';
import { Lesson_State, type BatchClosed } from '@backtalk/proto/facts';
import { Routes } from '@backtalk/proto/weights';
import { withBroker, type Connection } from '../connection.js';
import type { CommandContext } from '../shell.js';
import { askPublisher } from '../publisher-call.js';
import { retireLessons } from '../retire-lessons.js';

/** The version may have to be loaded again. */
const rollbackWithinMs = 180_000;
/** Who takes over leads within twelve seconds. */
const leadsWithinMs = 30_000;

export interface RollbackFlags {
  readonly why: string;
  /** The version that is to answer again; left out: the one before. */
  readonly to?: string;
  /** The lessons that the version was being taught are retired. */
  readonly forget: boolean;
}

export async function rollback(
  { connection, output }: CommandContext,
  { why, to = '', forget }: RollbackFlags,
): Promise<void> {
  const answer = to === '' ? await stepBack(connection, why) : await rollBackTo(connection, to, why);
  const forgotten: string[] = [];
  if (forget) for (const version of answer.burned) forgotten.push(...(await forgetLessons(connection, version)));
  output.value({ ...answer, ...(forget ? { forgotten } : {}) });
  const { burned } = answer;
  if (burned.length === 0) output.line(`${answer.to} answers already; nothing is burned.`);
  else {
    const are = burned.length === 1 ? 'is' : 'are';
    const answers = answer.untold
      ? 'answers again as soon as the publisher that leads tells the gateways'
      : `answers again after ${(answer.seconds * 1000).toFixed(0)} ms`;
    output.line(`${answer.to} ${answers}; ${burned.join(', ')} ${are} burned.`);
  }
  for (const text of new Set(forgotten)) output.line(`Retired: “${text}”`);
  if (forget && forgotten.length === 0) output.line(`${answer.from} was being taught no lesson.`);
}

const askAgainMs = 1_000;

/**
 * Says which version it means: a publisher that is lost in between may have burned it, and the next one is asked again, without
 * another version being burned for it.
 */
async function stepBack(connection: Connection, why: string): Promise<RollbackResponse> {
  const from = await withBroker(connection, async (broker) => {
    const routes = await kvBucket(broker, 'routes', Routes).get(connection.policy);
    return routes?.value.stable ?? '';
  });
  let endsMs = systemClock.now() + rollbackWithinMs;
  for (let mayBeDone = false; ;) {
    try {
      const answer = await rollBackTo(connection, '', why, { from });
      const isByAnother = mayBeDone && answer.burned.length === 0 && answer.to !== from;
      return isByAnother ? { ...answer, burned: [from] } : answer;
    } catch (error) {
      const code = isBacktalkError(error) ? error.code : '';
      mayBeDone ||= lost.has(code);
      const mayPass = lost.has(code) || code === 'not_leading' || (mayBeDone && code === 'unreachable');
      if (from === '' || systemClock.now() >= endsMs || !mayPass) throw error;
      endsMs = Math.min(endsMs, systemClock.now() + leadsWithinMs);
    }
    await delay(askAgainMs);
  }
}

/** What says nothing of whether it was done. */
const lost: ReadonlySet<string> = new Set(['peer_unreachable', 'deadline_exceeded']);

interface WhatFollows {
  /** Versions whose answers are to leave the log. */
  readonly forgotten?: readonly string[];
  /** A lesson is undone: the other steps are taken once more. */
  readonly undone?: boolean;
  /** The version that answers, as far as is known. */
  readonly from?: string;
}

/** @param to empty: the version before the one that answers */
export async function rollBackTo(
  connection: Connection,
  to: string,
  why: string,
  { forgotten = [], undone = false, from = '' }: WhatFollows = {},
): Promise<RollbackResponse> {
  const request = { policy: connection.policy, why, to, forgotten: [...forgotten], undone, from };
  return askPublisher(connection, (publisher) => publisher.rollback(request, { deadlineMs: rollbackWithinMs }));
}

/** An operator's word on each lesson that the version was being taught; what was learned before it stays. Out: their words. */
export async function forgetLessons(connection: Connection, version: string): Promise<string[]> {
  return withBroker(connection, async (broker, blobs) => {
    const batch = await batchOf(new FactReader(broker, blobs), connection.policy, version);
    const taught = new Set((batch?.samples ?? []).flatMap(({ lessons }) => lessons));
    const active = (batch?.lessons ?? []).filter(
      ({ id, state }) => state === Lesson_State.STATE_ACTIVE && taught.has(id),
    );
    await retireLessons(connection, active);
    return active.map(({ text }) => text);
  });
}

async function batchOf(reader: FactReader, policy: string, version: string): Promise<BatchClosed | undefined> {
  for await (const { message } of reader.read(['batchClosed'], { filter: { batchClosed: { policy } } }))
    if (message.version === version) return message;
  return undefined;
}
