import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { startFakeEngine } from '@backtalk/dialects/testing';
import { repositoryRoot, TemporaryDirectory } from '@backtalk/kit/testing';
import { expect, it } from 'vitest';
import { z } from 'zod';

const row = z.object({ name: z.string(), n: z.number(), balancedAccuracy: z.number() });

it('backtalk judge eval gives a row for each way of judging', async () => {
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
    const words = [program, '--data', folder.path, '--json', 'judge', 'eval', '--split', 'test'];
    const { stdout } = await promisify(execFile)(process.execPath, words, { timeout: 300_000 });
    const rows = stdout
      .trim()
      .split('\n')
      .map((line) => row.parse(JSON.parse(line)));
    expect(rows.map(({ name }) => name)).toEqual(['majority baseline', 'votes alone', 'without votes', 'all together']);
    expect(new Set(rows.map(({ n }) => n))).toEqual(new Set([275]));
    expect(rows[2]?.balancedAccuracy).toBeGreaterThan(rows[0]?.balancedAccuracy ?? 1);
  } finally {
    await engine.stop();
    folder.remove();
  }
});
