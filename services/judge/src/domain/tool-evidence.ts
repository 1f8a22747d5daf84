// Evidence in what tools returned. In: a result. Out: what its structured fields say: that it was refused, its client's mark
// of an error, exit code, HTTP status, error fields, state, and the summary of a test run. Prose is never read: a web page may
// say anything it likes.
import { clip, nextStateBounds } from '@backtalk/kit';
import type { ToolResult } from './next-state.js';
import { refusalIn } from './refusals.js';
import { runsPrograms } from './tool-names.js';
import type { EvidenceVote } from './verdict.js';
import type { Verdict } from './verdict-value.js';
import { testEvidence } from './test-runs.js';

/** Nothing was found: neither success nor failure. */
const empty: EvidenceVote = { name: 'tool_error', verdict: 0, detail: 'empty' };

const markedError: EvidenceVote = { name: 'tool_error', verdict: -1, detail: 'marked' };

const exitLine =
  /^(?:\[?(?:exit (?:code|status)|return ?code)[:= ]+(-?\d+)\]?|(?:process|command) exited with (?:code|status) (-?\d+)\.?|<returncode>(-?\d+)<\/returncode>)$/i;

/** Pieces of evidence, at most one of each name; the outermost field counts, fields inside text do not. */
export function toolEvidence({ name, text, isError }: ToolResult): EvidenceVote[] {
  const refused = refusalIn(text);
  if (refused !== undefined) return [refused];
  if (isError) return [markedError];
  if (text.trim() === '') return [empty];
  const fields = jsonObject(text);
  if (fields !== undefined) return fromFields(fields);
  const lines = clip(text, nextStateBounds.textCharactersMax)
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
  const first = lines[0] ?? '';
  const [, status] = /^HTTP(?:\/[\d.]+)? ([1-5]\d\d)\b/.exec(first) ?? [];
  if (status !== undefined && (lines.length === 1 || first.length <= 80)) return [httpEvidence(Number(status))];
  if (!runsPrograms(name)) return [];
  for (const line of harnessLines(lines)) {
    const [, ...codes] = exitLine.exec(line ?? '') ?? [];
    const code = codes.find((found) => found !== undefined);
    if (code !== undefined) return [exitEvidence(Number(code))];
  }
  const tests = testEvidence(lines);
  return tests === undefined ? [] : [tests];
}

/** Harnesses write it first or last, or as Codex in a head of lines before "Output:"; all else is a program's output. */
function harnessLines(lines: readonly string[]): readonly string[] {
  const output = lines.slice(0, headLinesMax).indexOf('Output:');
  if (output > 0 && /^(?:Chunk ID|Exit code|Wall time): /.test(lines[0] ?? '')) return lines.slice(0, output);
  return [...lines.slice(-1), ...lines.slice(0, 1)];
}

const headLinesMax = 8;

function jsonObject(text: string): Map<string, unknown> | undefined {
  const trimmed = text.trim();
  if (!trimmed.startsWith('{') || trimmed.length > nextStateBounds.jsonBytesMax) return undefined;
  try {
    const value: unknown = JSON.parse(trimmed);
    return typeof value === 'object' && value !== null ? new Map(Object.entries(value)) : undefined;
  } catch {
    // Not JSON: then it has no fields.
    return undefined;
  }
}

function fromFields(fields: ReadonlyMap<string, unknown>): EvidenceVote[] {
  const code = numberIn(fields, ['exit_code', 'exitCode', 'exit_status', 'exitStatus', 'returncode', 'return_code']);
  const said = codeGoesWith.some((name) => isSet(fields.get(name))) ? ['code'] : [];
  const status = numberIn(fields, ['status', 'status_code', 'statusCode', 'http_status', 'httpStatus', ...said]);
  const listNames = ['results', 'rows', 'hits', 'items', 'matches', 'data'];
  const lists = listNames.map((name) => fields.get(name)).filter((value) => Array.isArray(value));
  const found = [
    code === undefined ? undefined : exitEvidence(code),
    status !== undefined && status >= 100 && status < 600 ? httpEvidence(status) : undefined,
    errorField(fields),
    stateField(fields),
    lists.length > 0 && lists.every((list) => list.length === 0) ? empty : undefined,
  ];
  const votes = found.filter((vote) => vote !== undefined);
  const failures = votes.filter(({ verdict }) => verdict === -1);
  if (failures.length > 0) return failures;
  // A transport that went well says less than the state of what it carried.
  const waiting = votes.filter(({ verdict }) => verdict === 0);
  return waiting.length > 0 ? waiting : votes;
}

function exitEvidence(code: number): EvidenceVote {
  return { name: 'exit_code', verdict: code === 0 ? 1 : -1, detail: String(code) };
}

function httpEvidence(status: number): EvidenceVote {
  const verdict: Verdict = status >= 400 ? -1 : status === 202 || status < 200 ? 0 : 1;
  return { name: 'http_status', verdict, detail: String(status) };
}

/** Beside one of these `code` is a status; alone it may be a country's, a product's or a currency's. */
const codeGoesWith = ['error', 'errors', 'message', 'msg'];
const complaints = [...codeGoesWith, 'reason', 'detail'];
const errorNames = ['error', 'errors', 'isError', 'is_error', 'exception'];
const unsetValues: readonly unknown[] = [null, undefined, false, '', 0];
const unsetWords = /^(?:none|null|nil|false|no|0|n\/a|no errors?)$/i;
const successNames = ['ok', 'success', 'succeeded', 'applied'];

function errorField(fields: ReadonlyMap<string, unknown>): EvidenceVote | undefined {
  for (const name of errorNames) {
    const value = fields.get(name);
    if (isSet(value)) return { name: 'tool_error', verdict: -1, detail: name };
  }
  for (const name of successNames) {
    const value = fields.get(name);
    if (typeof value === 'boolean') return { name: 'tool_error', verdict: value ? 1 : -1, detail: name };
  }
  const denied = errorNames.find((name) => fields.has(name));
  return denied === undefined ? undefined : { name: 'tool_error', verdict: 1, detail: denied };
}

function isSet(value: unknown): boolean {
  if (typeof value === 'object' && value !== null) return Object.keys(value).length > 0;
  return !unsetValues.includes(value) && !(typeof value === 'string' && unsetWords.test(value.trim()));
}

const states: ReadonlyMap<string, Verdict> = new Map([
  ...statesOf(-1, 'error failed failure timeout'),
  ...statesOf(0, 'pending queued running in_progress waiting scheduled started processing'),
  ...statesOf(0, 'awaiting_confirmation needs_input requires_action accepted'),
  ...statesOf(1, 'ok success succeeded done completed complete finished'),
]);

function statesOf(verdict: Verdict, names: string): [string, Verdict][] {
  return names.split(' ').map((name) => [name, verdict]);
}

/** A record that the tool found may be in such a state; that the call itself was refused comes with a reason. */
const refusals: readonly string[] = ['rejected', 'denied', 'aborted'];

function stateField(fields: ReadonlyMap<string, unknown>): EvidenceVote | undefined {
  const isExplained = complaints.some((name) => isSet(fields.get(name)));
  for (const name of ['status', 'state', 'result', 'phase']) {
    const value = fields.get(name);
    const word = typeof value === 'string' ? value.toLowerCase() : '';
    const verdict = refusals.includes(word) && isExplained ? -1 : states.get(word);
    if (verdict !== undefined) return { name: 'tool_error', verdict, detail: name };
  }
  return undefined;
}

function numberIn(fields: ReadonlyMap<string, unknown>, names: readonly string[]): number | undefined {
  const value = names.map((name) => fields.get(name)).find((found) => Number.isInteger(found));
  return typeof value === 'number' ? value : undefined;
}
