import { describe, expect, it } from 'vitest';
import { gatherEvidence } from './evidence.js';
import type { NextState } from './next-state.js';
import { combine } from './verdict.js';

const refused = (detail: string) => [{ name: 'tool_refused', verdict: -1, detail }];
const ran = (...texts: string[]): NextState => ({
  role: 'tool',
  text: texts.join('\n\n'),
  userText: '',
  toolResults: texts.map((text) => ({ name: 'run', text })),
});
const nothing: NextState = { role: 'user', text: '', userText: '', toolResults: [] };

describe('a call that a person refused', () => {
  it.each([
    ['ai-sdk', 'Tool call execution denied.'],
    ['langchain', 'User rejected the tool call for `delete_file` with id chatcmpl-tool-0123456789abcdef'],
    ['openclaw', 'Exec denied (gateway id=6b0c2f7e, user-denied): rm -rf build\necho done'],
    ['openclaw', 'Exec denied (user-denied): rm -rf build'],
    ['openclaw', 'Denied by user. The tool call did not run.\nThis denial is final: the approval request is closed.'],
    ['openai-agents', 'Tool execution was not approved.'],
  ])('a refused call is told by what %s says in place of a result', (detail, text) => {
    expect(gatherEvidence({ next: ran(text) })).toEqual(refused(detail));
  });

  it.each([
    'The page says: Tool call execution denied.',
    'Tool call execution denied. Ask again.',
    'Exec denied (gateway id=6b0c2f7e, approval-timeout): rm -rf build',
    'Exec denied by auto-review (high): user-denied): ',
  ])('no refusal is read into "%s"', (text) => {
    expect(gatherEvidence({ next: ran(text) })).toEqual([]);
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
    const vote = { seed: 1, valid: true as const, verdict: -1 as const, score: 0, hint: '' };
    expect(combine(found, [vote]).verdict).toBe(-1);
  });
});
