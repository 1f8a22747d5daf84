// Did the person refuse a call, and what did they say? In: a tool's result. Out: which agent's software says so, and the person's own
// reason where it passes one on. Fields come before sentences, and a sentence counts from the result's first letter: a tool may print
// it in the midst of anything. Left out is what is said without a person as well: opencode's bare refusal and OpenHands' reasons (their
// unattended runs and hooks say the same), AutoGen's "Code execution was not approved" (a model may decide), MCP's `decline` (a client
// without a dialogue answers it: anthropics/claude-code#89858). Where an agent passes on the reason alone (AI SDK, LangChain,
// OpenAI agents SDK, pydantic-ai), nothing tells it from a result. Open WebUI has no approvals (open-webui/open-webui#26073). Pure.
import { isJsonObject } from '@backtalk/kit';
import type { ToolResult } from './next-state.js';
import { bringsNothing } from './tool-names.js';
import type { EvidenceVote } from './verdict.js';

export interface Refusal {
  readonly by: string;
  /** The person's own words; empty where none are passed on. */
  readonly reason: string;
}

type Sentence = readonly [by: string, pattern: RegExp];

/** The first group is the person's reason. */
const sentences: readonly Sentence[] = [
  // vercel/ai, packages/openai/src/chat/convert-to-openai-chat-messages.ts: `reason ?? ...`
  ['ai-sdk', /^Tool call execution denied\.$/],
  // langchain-ai/langchain, libs/langchain_v1/langchain/agents/middleware/human_in_the_loop.py; later releases add a sentence, or the reason.
  [
    'langchain',
    /^User rejected the tool call for `[^`]{1,128}` with id \S{1,128}?(?:\. The tool was not executed\.[^\n]{0,200})?$/,
  ],
  ['langchain', /^User rejected the tool call for `[^`]{1,128}` with reason: ([^]+)$/],
  // openclaw/openclaw: exec approvals, and those of plugins.
  ['openclaw', /^Exec denied \((?:gateway id=[^,()]{1,128}, )?user-denied\): /],
  ['openclaw', /^Denied by user\. The tool call did not run\.(?:\n|$)/],
  // openai/openai-agents-js: `TOOL_APPROVAL_REJECTION_MESSAGE`; openai/openai-agents-python: `DEFAULT_APPROVAL_REJECTION_MESSAGE`.
  ['openai-agents', /^Tool execution was not approved\.$/],
  // anthropics/claude-code: what its cli.js writes into `tool_result`.
  [
    'claude-code',
    /^The user doesn't want to (?:proceed with this tool use|take this action right now)\.(?: The tool use was rejected \([^)]{1,200}\)\.)? STOP what you are doing/,
  ],
  [
    'claude-code',
    /^The user doesn't want to proceed with this tool use\. The tool use was rejected \([^)]{1,200}\)\. To tell you how to proceed, the user said:\n([^]+?)(?:\n\nNote: The user's next message may contain [^]*)?$/,
  ],
  // cline/cline and RooCodeInc/Roo-Code, src/core/prompts/responses.ts; "[write_to_file for 'a.ts'] Result:" may come first.
  ['cline', /^(?:\[[^\n]{1,300}\] Result:\s{1,4})?The user denied this operation\.(?:\n|$)/],
  [
    'cline',
    /^(?:\[[^\n]{1,300}\] Result:\s{1,4})?The user denied this operation and provided the following feedback:\n<feedback>\n?([^]*?)\n?<\/feedback>/,
  ],
  // anomalyco/opencode, packages/opencode/src/permission/index.ts: `CorrectedError`.
  ['opencode', /^The user rejected permission to use this specific tool call with the following feedback: ([^]+)$/],
  // openai/codex, codex-rs/core/src/tools/events.rs.
  ['codex', /^(?:exec command|patch) rejected by user$/],
  // Its call was waiting for their leave, or running: codex-rs/core/src/tools/parallel.rs.
  ['codex', /^(?:Wall time: [\d.]{1,16} seconds\n)?aborted by user(?: after [\d.]{1,16}s)?$/],
  // google-gemini/gemini-cli, packages/core/src/core/coreToolScheduler.ts; QwenLM/qwen-code is made from it.
  ['gemini-cli', /^\[Operation Cancelled\] Reason: User did not allow tool call$/],
  // block/goose, crates/goose/src/agents/tool_execution.rs: `DECLINED_RESPONSE`.
  ['goose', /^The user has declined to run this tool\. DO NOT attempt to call this tool again\./],
  // zed-industries/zed, crates/agent/src/thread.rs.
  ['zed', /^Permission to run tool denied by user$/],
  // continuedev/continue, gui/src/redux/thunks/cancelToolCall.ts: `DEFAULT_USER_REJECTION_MESSAGE`.
  ['continue', /^The user skipped the tool call\.\nIf the tool call is optional or non-critical/],
  // OpenHands/software-agent-sdk, openhands-sdk/openhands/sdk/event/llm_convertible/observation.py: `UserRejectObservation`.
  ['openhands', /^Action rejected: User rejected the action$/],
  // microsoft/agent-framework, python/packages/core/agent_framework/_tools.py.
  ['agent-framework', /^Error: Tool call invocation was rejected by user\.$/],
  // google/adk-python, src/google/adk/tools/function_tool.py.
  ['adk', /^This tool call is rejected\.$/],
  // pydantic/pydantic-ai, pydantic_ai_slim/pydantic_ai/tools.py: `ToolDenied`.
  ['pydantic-ai', /^The tool call was denied\.$/],
];

/** Of an object that holds nothing else that was said: agents wrap their sentence in one of these. */
const wrappers = ['error', 'message', 'output', 'content', 'result'];
/** Longer texts are results; a reason is a person's message. */
const charactersMax = 4_096;

function refusalOf(text: string): Refusal | undefined {
  const whole = text.trim();
  if (whole.length > charactersMax) return undefined;
  const fields = objectIn(whole);
  return fields === undefined ? inSentence(whole) : inFields(fields);
}

/** What a person said as they refused calls, of tools that run or change something: what another brings could say the same. */
export function reasonsIn(results: readonly ToolResult[]): string {
  const reasons = results.filter(({ name }) => bringsNothing(name)).map(({ text }) => refusalOf(text)?.reason ?? '');
  return reasons.filter((reason) => reason !== '').join('\n');
}

export function refusalIn(text: string): EvidenceVote | undefined {
  const found = refusalOf(text);
  return found === undefined ? undefined : { name: 'tool_refused', verdict: -1, detail: found.by };
}

function inSentence(text: string): Refusal | undefined {
  for (const [by, pattern] of sentences) {
    const found = pattern.exec(text);
    if (found !== null) return { by, reason: (found[1] ?? '').trim() };
  }
  return undefined;
}

function inFields(fields: Readonly<Record<string, unknown>>): Refusal | undefined {
  const textOf = (name: string): string => {
    const value = fields[name];
    return typeof value === 'string' ? value.trim() : '';
  };
  // vercel/ai, packages/provider: a tool result's `output`, where a client passes it on as it is.
  if (fields['type'] === 'execution-denied') return { by: 'ai-sdk', reason: textOf('reason') };
  // pydantic/pydantic-ai: `ToolDenied`; its message is the person's where it is not the default.
  if (fields['kind'] === 'tool-denied') {
    return { by: 'pydantic-ai', reason: inSentence(textOf('message')) === undefined ? textOf('message') : '' };
  }
  // RooCodeInc/Roo-Code, src/core/prompts/responses.ts: a refusal says so or has `feedback`; a server's "denied" has neither.
  if (fields['status'] === 'denied' && (textOf('feedback') !== '' || inSentence(textOf('message')) !== undefined)) {
    return { by: 'roo', reason: textOf('feedback') };
  }
  const said = wrappers.filter((name) => textOf(name) !== '');
  return said.length === 1 ? inSentence(textOf(said[0] ?? '')) : undefined;
}

function objectIn(text: string): Readonly<Record<string, unknown>> | undefined {
  if (!text.startsWith('{')) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return isJsonObject(value) ? value : undefined;
  } catch {
    // Then it is a text.
    return undefined;
  }
}
