// Did the person refuse a call? In: a tool's result. Out: evidence, where it is what an agent's software says in place of a result when
// a person denies the call. Where an agent passes on the person's own reason instead, nothing tells it from a result. Pure.
import type { EvidenceVote } from './verdict.js';

/** By the software that says it: the whole result, or its first line where more follows for the model alone. */
const refusals: readonly (readonly [detail: string, pattern: RegExp])[] = [
  // `approval.reason ?? ...`, ai 6.
  ['ai-sdk', /^Tool call execution denied\.$/],
  // humanInTheLoopMiddleware without a message, langchain 1.5.
  ['langchain', /^User rejected the tool call for `[^`]{1,128}` with id \S{1,128}$/],
  // exec approvals and plugins' approvals, openclaw 2026.9.
  ['openclaw', /^Exec denied \((?:gateway id=[^,()]{1,128}, )?user-denied\): /],
  ['openclaw', /^Denied by user\. The tool call did not run\.(?:\n|$)/],
  // TOOL_APPROVAL_REJECTION_MESSAGE, @openai/agents-core 0.20.
  ['openai-agents', /^Tool execution was not approved\.$/],
];
const headCharacters = 512;

export function refusalIn(text: string): EvidenceVote | undefined {
  const head = text.trimStart().slice(0, headCharacters).trimEnd();
  const found = refusals.find(([, pattern]) => pattern.test(head));
  return found === undefined ? undefined : { name: 'tool_refused', verdict: -1, detail: found[0] };
}
