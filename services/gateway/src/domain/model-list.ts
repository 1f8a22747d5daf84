// Which models can a client name?
//
// In: the policies and the engines' leases. Out: OpenAI's model objects: each policy by its alias, and every version of
// it that an engine holds. Pure.
import type { EngineLease } from '@backtalk/proto/weights';
import { baseVersion, namedModel } from './model-name.js';

export interface ListedModel {
  readonly id: string;
  readonly object: 'model';
  readonly created: number;
  readonly owned_by: string;
}

export function listModels(
  policies: readonly string[],
  engines: readonly EngineLease[],
  created: number,
): ListedModel[] {
  const serving = engines.filter((engine) => engine.ready && engine.pools.includes('serving'));
  const held = new Set(serving.flatMap((engine) => engine.versions));
  const names = policies.flatMap((policy) => {
    if (serving.length === 0) return [policy];
    held.add(baseVersion(policy));
    return [policy, ...[...held].filter((version) => namedModel(version, [policy])?.kind === 'pinned').sort(byNumber)];
  });
  return names.map((id) => ({ id, object: 'model', created, owned_by: 'backtalk' }));
}

function byNumber(left: string, right: string): number {
  return Number(left.slice(left.lastIndexOf('-v') + 2)) - Number(right.slice(right.lastIndexOf('-v') + 2));
}
