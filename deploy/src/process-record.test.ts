import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { TemporaryDirectory, until } from '@backtalk/kit/testing';
import { describe, expect, it } from 'vitest';
import { endSurvivors, identityOf, ProcessRecord } from './process-record.js';

const folder = new TemporaryDirectory('process-record');
const file = folder.join('processes.json');

describe('what a killed start left running', () => {
  it('the next start ends what a killed start left running, with what that started itself', async () => {
    const left = spawn('bash', ['-c', 'sleep 60 & echo $!; wait'], {
      detached: true,
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const [line] = (await once(left.stdout, 'data')) as [Buffer];
    const exited = once(left, 'exit');
    new ProcessRecord(file).started('part', left.pid ?? 0);
    expect(await endSurvivors(file)).toEqual(['part']);
    expect(await exited).toEqual([null, 'SIGKILL']);
    const itsOwn = Number(String(line));
    await until(async () => identityOf(itsOwn) === undefined, { what: 'The end of what it had started' });
    expect(await endSurvivors(file)).toEqual([]);
  });

  it('ends no process that merely has the same number, and none where the record was cut off', async () => {
    writeFileSync(file, JSON.stringify({ part: `${String(process.pid)}:1` }));
    expect(await endSurvivors(file)).toEqual([]);
    writeFileSync(file, '{"part":"12');
    expect(await endSurvivors(file)).toEqual([]);
  });

  it('ends nothing after a start that stopped all it had started', async () => {
    const record = new ProcessRecord(file);
    record.started('part', process.pid);
    record.close();
    expect(await endSurvivors(file)).toEqual([]);
  });
});
