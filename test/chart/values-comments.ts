// The values of the chart with their comments, read from values.yaml. In: its text. Out: one row for each value.
import { isMap, isNode, isScalar, parseDocument, type YAMLMap } from 'yaml';

export interface ValueRow {
  readonly path: string;
  /** As JSON on one line. */
  readonly shown: string;
  /** Empty where the value has no comment. */
  readonly comment: string;
}

/** Values end where a comment stands, or where there is nothing deeper. */
export function rowsOf(text: string): ValueRow[] {
  const document = parseDocument(text);
  return isMap(document.contents) ? rowsIn(document.contents, '', text) : [];
}

function rowsIn(map: YAMLMap, prefix: string, text: string): ValueRow[] {
  return map.items.flatMap(({ key, value }) => {
    if (!isScalar(key)) return [];
    const path = `${prefix}${String(key.value)}`;
    const comment = commentBefore(text, key.range?.[0] ?? 0);
    if (comment === '' && isMap(value) && value.items.length > 0) return rowsIn(value, `${path}.`, text);
    const json: unknown = isScalar(value) ? value.value : isMap(value) || value !== null ? toPlain(value) : null;
    return [{ path, shown: JSON.stringify(json), comment }];
  });
}

function toPlain(value: unknown): unknown {
  return isNode(value) ? (value.toJSON() as unknown) : value;
}

/** The line above, where it is a comment made for readers of the table. */
function commentBefore(text: string, at: number): string {
  const lines = text.slice(0, at).split('\n').slice(0, -1);
  return /^\s*# -- (.*)$/.exec(lines.at(-1) ?? '')?.[1] ?? '';
}
