// Is a text the user speaking, or context that a client adds by itself? Known shapes of known clients, and parts that
// stood in the request before: a person seldom says the same paragraph twice, a client does at every turn.

const knownShapes: readonly RegExp[] = [
  /^\s*<(system-reminder|environment_details|environment_context|user_info|additional_data|context)\b[\s\S]*<\/\1>\s*$/i,
  /^\s*\[(?:context|system|memory|automated)[^\]]*\]/i,
  /^\s*(?:conversation info|sender) \(untrusted metadata\)/i,
  /^\s*(?:current (?:date|time)|today's date)\b[^\n]{0,80}$/i,
  /^\s*read heartbeat\.md\b/i,
  /^\s*heartbeat(?:_ok)?\s*$/i,
  /^\s*pre-compaction memory flush\b/i,
];

export function isClientContext(text: string, earlierTexts: ReadonlySet<string>): boolean {
  const trimmed = text.trim();
  return (
    trimmed === '' ||
    knownShapes.some((shape) => shape.test(trimmed)) ||
    (trimmed.length > 80 && earlierTexts.has(trimmed))
  );
}

const remindersInside = /<(system-reminder|environment_details)\b[^>]*>[\s\S]*?<\/\1>/gi;

/** The text without the blocks that known clients put around or behind a person's words. */
export function withoutClientBlocks(text: string): string {
  return text.replace(remindersInside, '').trim();
}
