// Takes the blocks out of a text that clients put around or behind a person's words: what stands between marks such as
// `<<<BEGIN_X>>>` and `<<<END_X>>>`, in elements with a compound name, and fields under a head that says whom not to trust. A mark that
// nothing closes opens nothing. Work grows with the text's length and no faster, whatever stands in it. Pure.

const tag = String.raw`<(?<slash>/?)(?<tag>[A-Za-z][\w-]{1,60})(?: [^<>\n]{0,200})?>`;
const rule = String.raw`(?:[<>]{2,8}|-{3,8}|={3,8}|#{3,8}|\*{3,8}|\[{1,3}|\]{1,3})`;
const fence = String.raw`${rule} ?(?<edge>BEGIN[ _:-]|START[ _:-]|END[ _:-]|/|)(?<fence>[A-Z][\w .:-]{2,80}?) ?${rule}`;
const marks = new RegExp(`${tag}|${fence}`, 'g');

/** Clients put these into the midst of a line too. */
const anywhere = new Set(['system-reminder', 'system_reminder', 'environment_details']);
/** Elements of web pages have names of one word; clients' have two, or cry. */
const compound = /^(?:[a-z]+(?:[-_][a-z]+)+|[a-z]+(?:[A-Z][a-z]+)+|[A-Z]{3,}(?:_[A-Z]+)*|context|timestamp)$/;
/** Around a person's words. */
const wrapping = /(?:query|message|request|prompt|task|question|feedback)$/i;

interface Mark {
  readonly at: number;
  readonly end: number;
  readonly opens: boolean;
  /** What closes it has the same. */
  readonly key: string;
  readonly isFence: boolean;
}

export function withoutMachineBlocks(text: string): string {
  const found = marksIn(text);
  const closings = new Map<string, Mark[]>();
  // Nearest first from the end, so that those that are passed can be dropped.
  for (const mark of found.toReversed()) {
    if (mark.opens) continue;
    const known = closings.get(mark.key);
    if (known === undefined) closings.set(mark.key, [mark]);
    else known.push(mark);
  }
  const kept: string[] = [];
  let from = 0;
  for (const mark of found) {
    if (!mark.opens || mark.at < from) continue;
    const close = nextOf(closings.get(mark.key), mark.end);
    if (close === undefined || !isBlock(text, mark, close, from)) continue;
    kept.push(text.slice(from, mark.at));
    from = close.end;
  }
  return withoutFields(kept.concat(text.slice(from)).join(''));
}

/** One match at a time: a list of all matches takes more memory than the text. */
function marksIn(text: string): Mark[] {
  const found: Mark[] = [];
  for (const match of text.matchAll(marks)) {
    const mark = markOf(match);
    if (mark !== undefined) found.push(mark);
  }
  return found;
}

function markOf(match: RegExpExecArray): Mark | undefined {
  const { slash, tag: name, edge, fence: fenced } = match.groups ?? {};
  const place = { at: match.index, end: match.index + match[0].length };
  if (fenced !== undefined) {
    const opens = edge !== '/' && edge?.startsWith('END') !== true;
    return { ...place, opens, key: `${match[0].charAt(0)} ${fenced}`, isFence: true };
  }
  const isKnown = name !== undefined && (anywhere.has(name.toLowerCase()) || compound.test(name));
  if (!isKnown || wrapping.test(name)) return undefined;
  return { ...place, opens: slash === '', key: name.toLowerCase(), isFence: false };
}

function nextOf(closings: Mark[] | undefined, from: number): Mark | undefined {
  while (closings !== undefined && (closings.at(-1)?.at ?? from) < from) closings.pop();
  return closings?.at(-1);
}

/** Whole lines, or parts of lines that other blocks share. */
function isBlock(text: string, open: Mark, close: Mark, from: number): boolean {
  if (open.isFence || anywhere.has(open.key)) return true;
  const before = text.slice(Math.max(from, open.at - edgeCharacters), open.at);
  const after = text.slice(close.end, close.end + edgeCharacters);
  return /(?:^|\n)[^\S\n]*$/.test(before) && /^[^\S\n]*(?:$|\n|<)/.test(after);
}

/** Of the spaces around a block, so many are looked at. */
const edgeCharacters = 80;

/** "Sender (untrusted metadata):" with a fenced object below it, or one on the next line. */
const fieldsHead = /^[^(\n]{1,80}\([^)\n]{0,40}\b(?:untrusted|trusted|metadata)\b[^)\n]{0,40}\):[^\S\n]*\n/i;
const fieldsMax = 16;

function withoutFields(text: string): string {
  let rest = text.trimStart();
  for (let at = 0; at < fieldsMax; at += 1) {
    const [head = ''] = fieldsHead.exec(rest) ?? [];
    if (head === '') break;
    const body = rest.slice(head.length);
    const isFenced = body.startsWith('```');
    const end = isFenced ? body.indexOf('```', 3) : body.indexOf('\n\n');
    if (end === -1) return '';
    rest = body.slice(isFenced ? end + 3 : end).trimStart();
  }
  return rest;
}
