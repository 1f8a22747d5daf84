// /v1/versions: what became of each step, and what its version answers otherwise than the one before.
//
// In: requests to list and to show versions. Out: those of the policies that the key opens; another's, and one that never was, are answered
// alike: not found. The questions are the gate's own, so that no person’s words are in it.
import type { Request, Response } from 'express';
import { gatewayErrors } from '../errors.js';
import { openPolicies } from '../domain/caller.js';
import { versionAnswer, type VersionRow } from '../domain/version-list.js';
import { admitted } from './admit.js';
import { sendJson } from './answer.js';
import type { Parts } from './parts.js';

const listed = { default: 20, most: 200 };

type VersionWork = (parts: Parts, request: Request, policies: readonly string[]) => Promise<unknown>;

function answered(work: VersionWork) {
  return (parts: Parts, request: Request, response: Response): Promise<void> =>
    admitted(parts, request, response, async ({ grant }) => {
      const policies = openPolicies(parts.config.policies, grant);
      sendJson(response, 200, await work(parts, request, policies));
    });
}

export const listVersions = answered(async (parts, request, policies) => {
  const { policy } = request.query;
  if (typeof policy === 'string' && !policies.includes(policy)) throw gatewayErrors.unknownModel({ param: 'policy' });
  const wanted = typeof policy === 'string' ? [policy] : policies;
  const limit = limitIn(request);
  const rows = await Promise.all(wanted.map((one) => parts.turns.versions.of(one)));
  const answers = rows.map((some) => some.map((row) => shown(parts, row)));
  // Whichever answers is among them, however many newer ones were taken back.
  return { object: 'list', data: answers.flatMap((some) => some.filter(({ serving }, at) => serving || at < limit)) };
});

export const showVersion = answered(async (parts, request, policies) => {
  const { id } = request.params;
  for (const policy of policies) {
    const found = (await parts.turns.versions.of(policy)).find(({ version }) => version === id);
    if (found !== undefined) return shown(parts, found);
  }
  throw gatewayErrors.unknownVersion();
});

function shown({ serving }: Parts, row: VersionRow) {
  return versionAnswer(row, serving.routes.of(row.policy)?.stable ?? '');
}

/** Of each policy. */
function limitIn({ query: { limit } }: Request): number {
  if (limit === undefined) return listed.default;
  const count = typeof limit === 'string' && /^\d{1,4}$/.test(limit) ? Number(limit) : 0;
  if (count < 1 || count > listed.most)
    throw gatewayErrors.invalidParameter({ param: 'limit', why: `it must be 1 to ${String(listed.most)}` });
  return count;
}
