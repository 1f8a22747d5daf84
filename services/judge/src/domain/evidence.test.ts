import { describe, expect, it } from 'vitest';
import { gatherEvidence } from './evidence.js';
import type { NextState } from './next-state.js';
import { reasonsIn } from './refusals.js';
import { combine } from './verdict.js';

const refused = (detail: string) => [{ name: 'tool_refused', verdict: -1, detail }];
const ran = (...texts: string[]): NextState => ({
  role: 'tool',
  text: texts.join('\n\n'),
  userText: '',
  toolResults: texts.map((text) => ({ name: 'run', text, isError: false })),
});
const nothing: NextState = { role: 'user', text: '', userText: '', toolResults: [] };

describe('a call that a person refused', () => {
  const rejected = 'The tool use was rejected (eg. if it was a file edit, the new_string was NOT written to the file).';
  const claude = `The user doesn't want to proceed with this tool use. ${rejected}`;
  const feedback =
    'The user denied this operation and provided the following feedback:\n<feedback>\nUse rg.\n</feedback>';

  it.each([
    ['ai-sdk', 'Tool call execution denied.'],
    ['ai-sdk', '{"type":"execution-denied"}'],
    ['langchain', 'User rejected the tool call for `delete_file` with id chatcmpl-tool-0123456789abcdef'],
    [
      'langchain',
      'User rejected the tool call for `run` with id 1. The tool was not executed. Do not retry this tool call.',
    ],
    ['openclaw', 'Exec denied (gateway id=6b0c2f7e, user-denied): rm -rf build\necho done'],
    ['openclaw', 'Exec denied (user-denied): rm -rf build'],
    ['openclaw', 'Denied by user. The tool call did not run.\nThis denial is final: the approval request is closed.'],
    ['openai-agents', 'Tool execution was not approved.'],
    ['claude-code', `${claude} STOP what you are doing and wait for the user to tell you how to proceed.`],
    ['claude-code', "The user doesn't want to take this action right now. STOP what you are doing and wait."],
    ['cline', 'The user denied this operation.'],
    ['cline', "[write_to_file for 'src/a.ts'] Result:\nThe user denied this operation."],
    ['roo', '{"status":"denied","message":"The user denied this operation."}'],
    ['codex', 'exec command rejected by user'],
    ['codex', '{"output":"exec command rejected by user","metadata":{"exit_code":1}}'],
    ['codex', 'patch rejected by user'],
    ['codex', 'Wall time: 10.4 seconds\naborted by user'],
    ['codex', 'aborted by user after 3.2s'],
    ['gemini-cli', '{"error":"[Operation Cancelled] Reason: User did not allow tool call"}'],
    [
      'goose',
      'The user has declined to run this tool. DO NOT attempt to call this tool again. If there are no others, STOP.',
    ],
    ['zed', 'Permission to run tool denied by user'],
    [
      'continue',
      'The user skipped the tool call.\nIf the tool call is optional or non-critical to the main goal, skip it.',
    ],
    ['openhands', 'Action rejected: User rejected the action'],
    ['agent-framework', 'Error: Tool call invocation was rejected by user.'],
    ['adk', '{"error": "This tool call is rejected."}'],
    ['pydantic-ai', 'The tool call was denied.'],
  ])('a refused call is told by what %s says in place of a result: %s', (detail, text) => {
    expect(gatherEvidence({ next: ran(text) })).toEqual(refused(detail));
    expect(reasonsIn(ran(text).toolResults)).toBe('');
  });

  it.each([
    ['ai-sdk', '{"type":"execution-denied","reason":"Use rg."}'],
    ['langchain', 'User rejected the tool call for `run` with reason: Use rg.'],
    ['claude-code', `${claude} To tell you how to proceed, the user said:\nUse rg.`],
    [
      'claude-code',
      `${claude} To tell you how to proceed, the user said:\nUse rg.\n\nNote: The user's next message may contain a correction.`,
    ],
    ['cline', feedback],
    [
      'cline',
      `[execute_command for 'grep -r a'] Result:\n${feedback}\n<environment_details>\n# Tabs\n</environment_details>`,
    ],
    ['roo', '{"status":"denied","feedback":"Use rg."}'],
    ['opencode', 'The user rejected permission to use this specific tool call with the following feedback: Use rg.'],
    ['pydantic-ai', '{"kind":"tool-denied","message":"Use rg."}'],
  ])('what a person said as they refused a call is theirs where %s passes it on: %s', (detail, text) => {
    expect(gatherEvidence({ next: ran(text) })).toEqual(refused(detail));
    expect(reasonsIn(ran(text).toolResults)).toBe('Use rg.');
    for (const name of [
      'web_fetch',
      'scrape',
      'get_email',
      'view_file',
      '',
      'read_console_messages',
      'run_websearch',
      'readPatch',
    ])
      expect(reasonsIn([{ name, text, isError: false }])).toBe('');
  });

  it.each([
    'The page says: Tool call execution denied.',
    'Tool call execution denied. Ask again.',
    'Exec denied (gateway id=6b0c2f7e, approval-timeout): rm -rf build',
    'Exec denied by auto-review (high): user-denied): ',
    'The user rejected permission to use this specific tool call.',
    'Action rejected: Blocked by a hook',
    'Code execution was not approved. Reason: it looks dangerous',
    `total 4\n${feedback}`,
    '{"lines":["The user denied this operation."]}',
    '{"action":"decline"}',
    `The user denied this operation.\n${'.'.repeat(5_000)}`,
  ])('no refusal is read into "%s"', (text) => {
    expect(gatherEvidence({ next: ran(text) }).filter(({ name }) => name === 'tool_refused')).toEqual([]);
  });

  it('what a server denied stays the server’s error', () => {
    const denied = [{ name: 'tool_error', verdict: -1, detail: 'status' }];
    expect(gatherEvidence({ next: ran('{"status":"denied","message":"No access to bucket."}') })).toEqual(denied);
  });

  it('a refused call counts though another went well, and beside what the person says', () => {
    const denied = 'Tool call execution denied.';
    expect(gatherEvidence({ next: ran('{"exit_code": 0}', denied) })).toEqual(refused('ai-sdk'));
    const spoken: NextState = { ...ran('{"exit_code": 1}', denied), role: 'user', text: 'Why?', userText: 'Why?' };
    expect(gatherEvidence({ next: spoken })).toEqual(refused('ai-sdk'));
  });
});

describe('what a person did with an answer', () => {
  it('an answer that was made again is a bad one, unless it had failed', () => {
    const found = gatherEvidence({ next: nothing, act: 'regenerated' });
    expect(found).toEqual([{ name: 'regenerated', verdict: -1, detail: '' }]);
    expect(combine(found, []).verdict).toBe(-1);
    expect(gatherEvidence({ next: nothing, act: 'regenerated', ending: 'failed' })).toEqual([]);
  });

  it('an answer that was stopped is recorded, and decides nothing', () => {
    const found = gatherEvidence({ next: nothing, act: 'regenerated', ending: 'stopped' });
    expect(found).toEqual([{ name: 'stopped', verdict: 0, detail: '' }]);
    const vote = { seed: 1, valid: true as const, verdict: -1 as const, hint: '' };
    expect(combine(found, [vote]).verdict).toBe(-1);
  });
});
