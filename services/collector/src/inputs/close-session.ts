// A session is over: says so once, with the turns that were continued in it.
import type { Trace } from '@backtalk/kit';
import type { SessionClosed_Reason } from '@backtalk/proto/facts';
import type { LinkParts } from './link-turn.js';

export async function closeSession(
  { index, log, events }: LinkParts,
  session: string,
  reason: SessionClosed_Reason,
  trace: Trace,
): Promise<void> {
  const entry = await index.session(session);
  // A late answer or a rebuild may have touched a session that was closed before, or of which nothing is left.
  if (entry === undefined || (await index.isClosed(session))) return index.forgetIdle(session);
  const { tenant, user, policy } = entry;
  const turns = await index.continuedTurns(session);
  await log.publishClosed({ session, tenant, user, policy, reason, turns }, trace);
  await index.markClosed(session);
  events.closed(reason, turns.length);
}
