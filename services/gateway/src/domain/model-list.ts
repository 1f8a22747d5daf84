// Which models can a client name?
//
// In: the policies and the engines' leases. Out: model objects of OpenAI's and Anthropic's APIs in one: each policy by its alias, and every version of
// it that an engine holds. Pure.
import { baseVersion, versionNumber } from '@backtalk/kit';
import type { EngineLease } from '@backtalk/proto/weights';

interface ListedModel {
  readonly id: string;
  readonly object: 'model';
  readonly created: number;
  readonly owned_by: string;
  /** What Anthropic's clients read of a model. */
  readonly type: 'model';
  readonly display_name: string;
  readonly created_at: string;
}

/** OpenAI gives each model a moment of creation; versions have none that a gateway knows. */
const created = 0;

export function listModels(policies: readonly string[], engines: readonly EngineLease[]): ListedModel[] {
  const serving = engines.filter((engine) => engine.ready && engine.pools.includes('serving'));
  const held = new Set(serving.flatMap((engine) => engine.versions));
  const names = policies.flatMap((policy) => {
    if (serving.length === 0) return [policy];
    held.add(baseVersion(policy));
    const numbered = [...held].flatMap((version) => {
      const number = versionNumber(policy, version);
      return number === undefined ? [] : [{ version, number }];
    });
    return [policy, ...numbered.sort((left, right) => left.number - right.number).map(({ version }) => version)];
  });
  const createdAt = new Date(created).toISOString();
  return names.map((id) => ({
    id,
    object: 'model',
    created,
    owned_by: 'backtalk',
    type: 'model',
    display_name: id,
    created_at: createdAt,
  }));
}
