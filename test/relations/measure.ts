// How well the trainer tells same, opposite and different wishes apart, on labelled pairs. What counts most is what cannot be undone: two wishes
// that were taken for one.
import { relateByWords } from '@backtalk/trainer/wishes';

export const relations = ['same', 'opposite', 'different'] as const;
type Relation = (typeof relations)[number];

export interface LabelledPair {
  readonly a: string;
  readonly b: string;
  readonly relation: Relation;
  readonly kind: string;
}

export interface RelationReport {
  readonly pairs: number;
  /** Of each relation (rows), what it was taken for (columns), in the order same, opposite, different. */
  readonly confusion: readonly (readonly number[])[];
  /** Of all that is not the same, the share that was taken for it. */
  readonly falseMerges: number;
  readonly oppositesMerged: number;
  readonly sameFound: number;
  readonly oppositesFound: number;
}

export interface KindReport extends RelationReport {
  readonly kind: string;
}

/** @param relate words alone when left out */
export function measureRelations(pairs: readonly LabelledPair[], relate = relateByWords): RelationReport {
  const took = pairs.map(({ a, b, relation }) => [relation, relate(a, b)] as const);
  const count = (relation: Relation, taken: Relation): number =>
    took.filter(([one, other]) => one === relation && other === taken).length;
  const confusion = relations.map((relation) => relations.map((taken) => count(relation, taken)));
  const of = (relation: Relation): number => took.filter(([one]) => one === relation).length;
  const merged = count('opposite', 'same') + count('different', 'same');
  return {
    pairs: pairs.length,
    confusion,
    falseMerges: share(merged, of('opposite') + of('different')),
    oppositesMerged: count('opposite', 'same'),
    sameFound: share(count('same', 'same'), of('same')),
    oppositesFound: share(count('opposite', 'opposite'), of('opposite')),
  };
}

export function measureKinds(pairs: readonly LabelledPair[], relate = relateByWords): KindReport[] {
  const kinds = [...new Set(pairs.map(({ kind }) => kind))].sort();
  return kinds.map((kind) =>
    Object.assign(
      { kind },
      measureRelations(
        pairs.filter((pair) => pair.kind === kind),
        relate,
      ),
    ),
  );
}

function share(part: number, whole: number): number {
  return whole === 0 ? 0 : part / whole;
}
