// Which models can a client name?
//
// In: the policies and the engines' leases. Out: OpenAI's model objects: each policy by its alias, and every version of
// it that an engine holds. Pure.
import { baseVersion, versionNumber } from '@backtalk/kit';
import type { EngineLease } from '@backtalk/proto/weights';

interface ListedModel {
  readonly id: string;
  readonly object: 'model';
  readonly created: number;
  readonly owned_by: string;
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
  return names.map((id) => ({ id, object: 'model', created, owned_by: 'backtalk' }));
}
