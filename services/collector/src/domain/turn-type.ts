// Main or side? A header decides if there is one; otherwise patterns of requests that clients make for themselves.
import type { ChatMessage } from './messages.js';

const sideTypes: ReadonlySet<string> = new Set(['side', 'title', 'heartbeat', 'memory', 'auxiliary']);

const sidePatterns: readonly RegExp[] = [
  /\b(?:generate|create|write|suggest)\b[^.\n]{0,40}\b(?:concise |short |brief )*title\b[^.\n]{0,60}\b(?:conversation|chat|session|discussion)\b/i,
  /^\s*read heartbeat\.md\b/i,
  /^\s*pre-compaction memory flush\b/i,
  /\bsummari[sz]e (?:the|this|our) (?:conversation|chat) (?:so far|history)\b/i,
];

export function isSideRequest(declaredType: string, messages: readonly ChatMessage[]): boolean {
  if (declaredType !== '') return sideTypes.has(declaredType.toLowerCase());
  const lastUser = messages.findLast(({ role }) => role === 'user');
  return lastUser !== undefined && lastUser.texts.some((text) => sidePatterns.some((pattern) => pattern.test(text)));
}
