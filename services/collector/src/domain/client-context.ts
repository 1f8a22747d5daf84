// What a client adds by itself to a person's message. In: a text in the role of a user. Out: whether all of it is the
// client's, and the text without the client's blocks. Work grows with the text's length and no faster, whatever stands in it.
import { clip } from '@backtalk/kit';

/** Marks that known clients put around what they add. */
const contextNames = [
  'system-reminder',
  'environment_details',
  'environment_context',
  'user_info',
  'additional_data',
  'context',
];
/** Shapes in which known clients add context by themselves; all of them show at its head. */
const shapes: readonly RegExp[] = [
  /^\[(?:context|system|memory|automated)[^\]]{0,400}\]/i,
  /^(?:conversation info|sender) \(untrusted metadata\)/i,
  /^(?:current (?:date|time)|today's date)\b[^\n]{0,80}$/i,
  /^read heartbeat\.md\b/i,
  /^heartbeat(?:_ok)?$/i,
  /^pre-compaction memory flush\b/i,
];
const headCharacters = 1_024;

export function isClientContext(text: string): boolean {
  const head = text.slice(0, headCharacters);
  if (shapes.some((shape) => shape.test(head))) return true;
  const lower = head.toLowerCase();
  const name = contextNames.find((one) => lower.startsWith(`<${one}`) && !/[\w-]/.test(lower.charAt(one.length + 1)));
  return name !== undefined && clip(text, headCharacters).toLowerCase().endsWith(`</${name}>`);
}

/** Blocks that known clients put around or behind a person's words. */
const blockMark = /<(\/?)(system-reminder|environment_details)\b/gi;

/** Without the blocks, each from a mark to the first that closes it. */
export function withoutClientBlocks(text: string): string {
  const kept: string[] = [];
  let from = 0;
  let opened: { readonly at: number; readonly name: string } | undefined;
  for (const mark of text.matchAll(blockMark)) {
    const [, slash, said = ''] = mark;
    const name = said.toLowerCase();
    if (slash === '') opened ??= mark.index < from ? undefined : { at: mark.index, name };
    else if (opened?.name === name) {
      kept.push(text.slice(from, opened.at));
      const end = text.indexOf('>', mark.index);
      from = end === -1 ? text.length : end + 1;
      opened = undefined;
    }
  }
  return kept.concat(text.slice(from)).join('');
}
