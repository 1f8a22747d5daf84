// An operator asks what this judge makes of a turn that was judged before, which may have been by another model or with other settings. What
// comes of it stands beside the judgement that counts, and changes nothing of it. Every turn that is asked about is answered, by a reason where
// it is not judged.
import { isBacktalkError, type Delivery, type StoredFact, type Trace } from '@backtalk/kit';
import type { JudgementAsked } from '@backtalk/proto/facts';
import type { JudgeMark } from '../domain/judgement.js';
import type { Material } from '../domain/material.js';
import type { CastVote } from '../domain/verdict.js';
import { leftOut } from '../domain/vote-rule.js';
import { judgeErrors } from '../errors.js';
import type { Judgement } from '../outputs/vote-queue.js';
import type { JudgeParts } from './parts.js';
import { evidenceOnly, judgementOf } from './turn-continued.js';

const goneCodes = new Set([
  'turn_unreadable',
  'conversation_unreadable',
  'fact_undecodable',
  'blob_missing',
  'blob_corrupt',
]);

interface Read {
  readonly material: Material;
  readonly votes: readonly CastVote[];
  readonly mark: JudgeMark;
}

export async function judgementAsked(
  parts: JudgeParts,
  { message, trace }: StoredFact<'judgementAsked'>,
  { signal }: Delivery,
): Promise<void> {
  const { judgements, voting, config } = parts;
  if (await judgements.isRejudged(message)) return;
  const material = await readAgain(parts, message);
  if (typeof material === 'string')
    return judgements.storeAgain({ ...message, judged: undefined, refused: material }, trace);
  // What was done needs no reader. How far the policy has moved on since is no matter here.
  const { voteShare } = config;
  const why = leftOut(message.turn, { since: 0, back: 0 }, { voteShare, versionsBehind: 0 });
  if (voting === undefined || material.act !== undefined || why !== undefined)
    return rejudged(parts, message, { material, votes: [], mark: evidenceOnly }, trace);
  const judgement: Judgement = { ...message, kind: 'again', later: [] };
  await voting.queue.decide(judgement, trace, signal);
  if (await judgements.isRejudged(message)) return;
  await voting.queue.forget(judgement);
  throw judgeErrors.judgementMissing();
}

export async function rejudged(
  parts: JudgeParts,
  { turn, tenant, user, policy, asked = '' }: Omit<JudgementAsked, 'asked'> & Pick<Judgement, 'asked'>,
  { material, votes, mark }: Read,
  trace: Trace,
): Promise<void> {
  const { message } = judgementOf(parts, material, votes, mark);
  await parts.judgements.storeAgain({ turn, tenant, user, policy, asked, judged: message, refused: '' }, trace);
}

/** Why not, where it is not judged again. */
async function readAgain({ turns }: JudgeParts, ids: JudgementAsked): Promise<Material | string> {
  try {
    const [opened, continued] = await Promise.all([turns.openedIfThere(ids), turns.continued(ids)]);
    if (opened === undefined || continued === undefined) return 'gone';
    const withheld = await turns.withheld(opened, continued);
    if (withheld !== undefined) return withheld;
    // Another judge may be another company's: old words do not go there after a "no".
    if (await turns.hasSaidNo(ids)) return 'opted_out';
    return (await turns.material(continued)) ?? 'gone';
  } catch (error) {
    // It was judged long ago, so nothing of it is on its way.
    if (isBacktalkError(error) && goneCodes.has(error.code)) return 'gone';
    throw error;
  }
}
