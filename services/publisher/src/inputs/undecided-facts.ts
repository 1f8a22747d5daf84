// Which trained versions wait for a decision, oldest first.
//
// In: the log, and the fact up to which it is asked. Out: facts of versions that are not decided. Never: less than there
// is, because a copy of the log that is behind does not show yet what another one has delivered.
import type { FactReader, StoredFact } from '@backtalk/kit';
import { numberOf } from '../domain/versions.js';
import { publisherErrors } from '../errors.js';

export interface UndecidedParts {
  readonly policy: string;
  readonly reader: Pick<FactReader, 'read'>;
  readonly isDecided: (version: string) => boolean;
}

/** `to`: sequence of a fact that was delivered, or undefined for all that there are. */
export async function undecidedFacts(
  { policy, reader, isDecided }: UndecidedParts,
  from: number,
  to: number | undefined,
): Promise<StoredFact<'weightsTrained'>[]> {
  const undecided: StoredFact<'weightsTrained'>[] = [];
  let isShown = to === undefined || to < from;
  for await (const fact of reader.read(['weightsTrained'], { from, filter: { weightsTrained: { policy } } })) {
    const { version } = fact.message;
    if (to !== undefined && fact.sequence > to) break;
    isShown ||= fact.sequence === to;
    if (numberOf(policy, version) !== undefined && !isDecided(version)) undecided.push(fact);
  }
  if (!isShown) throw publisherErrors.notDecided({ cause: 'the log does not show it yet' });
  return undecided;
}
