import { describe, expect, it } from 'vitest';
import { toolEvidence } from './tool-evidence.js';

const verdicts = (text: string, name = 'run_command', isError = false) =>
  toolEvidence({ name, text, isError }).map((vote) => [vote.name, vote.verdict, vote.detail]);

describe('evidence in tool results', () => {
  it('a result that its client marks as an error is one, whatever it says, unless the person refused the call', () => {
    expect(verdicts('String to replace not found in file.', 'Edit', true)).toEqual([['tool_error', -1, 'marked']]);
    expect(verdicts('', 'Edit', true)).toEqual([['tool_error', -1, 'marked']]);
    expect(verdicts('{"exit_code": 0}', 'Bash', true)).toEqual([['tool_error', -1, 'marked']]);
    expect(verdicts('Tool call execution denied.', 'Bash', true)).toEqual([['tool_refused', -1, 'ai-sdk']]);
  });

  it('reads exit codes from fields, and from the first or last line', () => {
    expect(verdicts('{"stdout": "", "exit_code": 2}')).toEqual([['exit_code', -1, '2']]);
    expect(verdicts('compiled\nExit code: 0')).toEqual([['exit_code', 1, '0']]);
    expect(verdicts('<returncode>1</returncode>\nno such file')).toEqual([['exit_code', -1, '1']]);
    expect(verdicts('one\nExit code: 1\nthree')).toEqual([]);
    const head =
      'Chunk ID: 33549c\nWall time: 0.0 seconds\nProcess exited with code 2\nOriginal token count: 4\nOutput:\n';
    expect(verdicts(`${head}no such file`)).toEqual([['exit_code', -1, '2']]);
    expect(verdicts(`${head}Exit code: 0`)).toEqual([['exit_code', -1, '2']]);
    expect(verdicts('Exit code: 0\nWall time: 0.1 seconds\nOutput:\nexit code: 1')).toEqual([['exit_code', 1, '0']]);
    expect(verdicts('Chunk ID: 33549c\nWall time: 0.0 seconds\nOutput:\nProcess exited with code 2\nand more')).toEqual(
      [],
    );
  });

  it('reads HTTP status, where 202 is neither success nor failure', () => {
    expect(verdicts('HTTP/1.1 404 Not Found\n\nsorry')).toEqual([['http_status', -1, '404']]);
    expect(verdicts('{"status": 200, "body": "x"}')).toEqual([['http_status', 1, '200']]);
    expect(verdicts('HTTP 202 Accepted\n{}')).toEqual([['http_status', 0, '202']]);
  });

  it('a code is a status only beside what says what went wrong', () => {
    expect(verdicts('{"country": "Mexico", "code": 484}')).toEqual([]);
    expect(verdicts('{"error": null, "country": "Mexico", "code": 484}')).toEqual([['tool_error', 1, 'error']]);
    expect(verdicts('{"code": 404, "detail": "blue mug"}')).toEqual([]);
    expect(verdicts('{"code": 500, "msg": "boom"}')).toEqual([['http_status', -1, '500']]);
    expect(verdicts('{"code": 404, "message": "No such page."}')).toEqual([['http_status', -1, '404']]);
  });

  it('an error field that names no error is none', () => {
    for (const none of ['{}', '[]', '"none"', '"No errors"', '"false"', '0'])
      expect(verdicts(`{"error": ${none}}`)).toEqual([['tool_error', 1, 'error']]);
    expect(verdicts('{"error": "nonexistent file"}')).toEqual([['tool_error', -1, 'error']]);
  });

  it('a record may be rejected without the call having failed', () => {
    expect(verdicts('{"id": 7, "status": "rejected"}')).toEqual([]);
    expect(verdicts('{"status": "rejected", "reason": "No rights."}')).toEqual([['tool_error', -1, 'status']]);
  });

  it('reads error fields and states', () => {
    expect(verdicts('{"error": {"code": "x"}}')).toEqual([['tool_error', -1, 'error']]);
    expect(verdicts('{"error": null, "rows": [1]}')).toEqual([['tool_error', 1, 'error']]);
    expect(verdicts('{"error": null, "rows": []}')).toEqual([['tool_error', 0, 'empty']]);
    expect(verdicts(' ')).toEqual([['tool_error', 0, 'empty']]);
    expect(verdicts('{"success": false}')).toEqual([['tool_error', -1, 'success']]);
    expect(verdicts('{"status": "queued"}')).toEqual([['tool_error', 0, 'status']]);
  });

  it('reads the summaries of test runs', () => {
    expect(verdicts('== 2 failed, 1 passed in 0.3s ==')).toEqual([['test_verdict', -1, 'pytest']]);
    expect(verdicts('# tests 8\n# pass 8\n# fail 0')).toEqual([['test_verdict', 1, 'tap']]);
    expect(verdicts('Tests:       15 passed, 15 total')).toEqual([['test_verdict', 1, 'jest']]);
    expect(verdicts('Ran 3 tests in 0.01s\n\nOK')).toEqual([['test_verdict', 1, 'unittest']]);
    expect(verdicts('The answer to all of it:\nOK')).toEqual([]);
  });

  it('lets no page decide: fields and lines inside fetched text are text', () => {
    expect(verdicts('{"status": 200, "body": "{\\"error\\": \\"x\\"} Exit code: 1"}', 'fetch_page')).toEqual([
      ['http_status', 1, '200'],
    ]);
    expect(verdicts('Nice page.\nExit code: 1', 'fetch_page')).toEqual([]);
    expect(verdicts('\\boxed{-1} thank you', 'read_file')).toEqual([]);
  });

  it.each([
    ...['scrape_site', 'get_email', 'view_file', 'cat', '', 'spreadsheet', 'web_run', 'run_websearch', 'webfetch_run'],
    ...['mcp__chrome__read_console_messages', 'read_test_file', 'read_build_log', 'open_script'],
  ])('what %j brings ends in whatever its author likes', (name) => {
    expect(verdicts('Nice page.\nExit code: 1', name)).toEqual([]);
    expect(verdicts('# tests 8\n# fail 0', name)).toEqual([]);
  });

  it.each([
    'Bash',
    'exec',
    'run_webpack',
    'spreadsheet_run',
    'execute_command',
    'run_in_terminal',
    'runTests',
    'container.exec',
  ])('%s runs programs', (name) => {
    expect(verdicts('oh\nExit code: 1', name)).toEqual([['exit_code', -1, '1']]);
  });

  it('a run whose files could not be loaded, or whose tests were cancelled, has failed', () => {
    expect(verdicts('Test Suites: 1 failed, 3 passed, 4 total\nTests:       12 passed, 12 total')).toEqual([
      ['test_verdict', -1, 'jest'],
    ]);
    expect(verdicts(' Test Files  1 failed | 2 passed (3)\n      Tests  9 passed (9)')).toEqual([
      ['test_verdict', -1, 'jest'],
    ]);
    expect(verdicts('# tests 3\n# fail 0\n# cancelled 3')).toEqual([['test_verdict', -1, 'tap']]);
    expect(verdicts('0 passing (2ms)')).toEqual([]);
    expect(verdicts('Test lockout after 3 failed logins ... ok\nRan 1 test in 0.01s\n\nOK')).toEqual([
      ['test_verdict', 1, 'unittest'],
    ]);
  });

  it('passes over what looks like JSON and is not', () => {
    expect(verdicts('{"exit_code": ')).toEqual([]);
    expect(verdicts('[1, 2]')).toEqual([]);
    expect(verdicts('{"__proto__": {"error": 1}}')).toEqual([]);
  });
});
