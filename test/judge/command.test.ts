import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { startFakeEngine } from '@backtalk/dialects/testing';
import { repositoryRoot, TemporaryDirectory } from '@backtalk/kit/testing';
import { expect, it } from 'vitest';
import { z } from 'zod';

const row = z.object({ name: z.string(), n: z.number(), balancedAccuracy: z.number() });

/** What the command prints, with a fake engine that serves. */
async function evaluated(
  prepare: (folder: string) => readonly string[],
): Promise<{ readonly stdout: string; readonly folder: string }> {
  const folder = new TemporaryDirectory('judge-eval');
  const engine = await startFakeEngine();
  try {
    const connection = {
      endpoint: engine.url,
      engine: engine.url,
      policy: 'backtalk',
      baseModel: engine.baseModel,
      natsUrl: 'nats://127.0.0.1:1',
      natsUser: 'admin',
      natsPassword: 'secret',
      blobStore: `folder:${folder.path}`,
      health: {},
    };
    writeFileSync(join(folder.path, 'connection.json'), JSON.stringify(connection));
    const program = join(repositoryRoot(), 'services/cli/bin/backtalk.mjs');
    const words = [program, '--data', folder.path, '--json', 'judge', 'eval', ...prepare(folder.path)];
    const { stdout } = await promisify(execFile)(process.execPath, words, { timeout: 300_000 }).catch(
      (error: unknown) => z.object({ stdout: z.string() }).parse(error),
    );
    return { stdout, folder: folder.path };
  } finally {
    await engine.stop();
    folder.remove();
  }
}

it('backtalk judge eval gives a row for each way of judging', async () => {
  const { stdout } = await evaluated(() => ['--split', 'test']);
  const rows = stdout
    .trim()
    .split('\n')
    .map((line) => row.parse(JSON.parse(line)));
  expect(rows.map(({ name }) => name)).toEqual(['majority baseline', 'without votes']);
  expect(new Set(rows.map(({ n }) => n))).toEqual(new Set([275]));
  expect(rows[1]?.balancedAccuracy).toBeGreaterThan(rows[0]?.balancedAccuracy ?? 1);
});

const turn = {
  context: [{ role: 'user', content: 'How far is it?' }],
  answer: 'A mile.',
  next: { role: 'user', content: 'Wrong! That is not right at all.' },
  label: 'correction',
  hint: null,
};

it('backtalk judge eval measures verdicts and hindsight on a file of labelled turns', async () => {
  const { stdout } = await evaluated((folder) => {
    const file = join(folder, 'turns.jsonl');
    writeFileSync(
      file,
      `${JSON.stringify(turn)}\n${JSON.stringify({ ...turn, label: -1, hint: 'It is not right.' })}\n`,
    );
    return ['--file', file];
  });
  expect(JSON.parse(stdout)).toMatchObject({ name: 'without votes', n: 2, hints: { expected: 1 } });
});

it('backtalk judge eval refuses a line that is no labelled turn, by its number', async () => {
  const { stdout } = await evaluated((folder) => {
    const file = join(folder, 'turns.jsonl');
    writeFileSync(file, `${JSON.stringify(turn)}\n\n${JSON.stringify({ ...turn, label: 'good' })}\n`);
    return ['--file', file];
  });
  expect(stdout).toMatch(/set_refused.*Line 3 cannot be used: label/);
});
