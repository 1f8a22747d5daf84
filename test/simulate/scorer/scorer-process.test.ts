import { describe, expect, it } from 'vitest';
import { startScorer } from './scorer-process.js';

const rule = { violates_if: [{ op: 'matches', pattern: '[A-Z]' }] };
const answers = [{ question: 'How?', answer: 'So.', ended: true }];

/** A program that says the first of these lines at its start, and another at each line that it is given. */
function saying(...lines: readonly object[]) {
  const script = `
    const lines = ${JSON.stringify(lines)};
    const say = () => lines.length > 0 && console.log(JSON.stringify(lines.shift()));
    say();
    require('node:readline').createInterface({ input: process.stdin }).on('line', say);`;
  return [process.execPath, '-e', script] as const;
}

const ready = { ready: true };
const read = { id: null, groups: {} };

describe('the scorer’s process', () => {
  it('a rule that Python cannot read is refused before anything is measured, without advice about the set-up', async () => {
    const message = 'rule.violates_if.0.pattern is no regular expression to Python (bad escape \\p)';
    const command = saying(ready, { id: null, error: { code: 'request_invalid', message } });
    const refused = startScorer(rule, { command });
    await expect(refused).rejects.toMatchObject({ code: 'rule_unread' });
    await expect(refused).rejects.toThrow(
      `Answers cannot be scored by this user's rule: ${message}. Write it so that Python's re reads it, too.`,
    );
  });

  it('the real scorer refuses a rule that only JavaScript reads', async () => {
    const foreign = { violates_if: [{ op: 'matches', pattern: '\\p{L}', flags: 'u' }] };
    await expect(startScorer(foreign)).rejects.toMatchObject({ code: 'rule_unread' });
  });

  it('a stop ends a scoring that does not come to its end', async () => {
    const stop = new AbortController();
    const scorer = await startScorer(rule, { signal: stop.signal, command: saying(ready, read) });
    const scoring = scorer.score(answers);
    stop.abort();
    await expect(scoring).rejects.toMatchObject({ name: 'AbortError' });
    await scorer.stop();
  });

  it('a scorer that ends by itself is said with what installs it', async () => {
    const command = [process.execPath, '-e', 'console.error("no such package"); process.exit(1)'] as const;
    await expect(startScorer(rule, { command })).rejects.toThrow(
      'The scorer stopped: no such package. Its packages are installed by: node deploy/start.mjs setup --with scoring',
    );
  });
});
