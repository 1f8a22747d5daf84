import { describe, expect, it } from 'vitest';
import { cpuMicroseconds, residentOf } from './process-figures.js';

describe('figures of a process', () => {
  it('CPU time agrees with what the process says of itself', () => {
    const { user, system } = process.cpuUsage();
    const measured = cpuMicroseconds(process.pid);
    expect(measured).toBeGreaterThan((user + system) * 0.9 - 50_000);
    expect(measured).toBeLessThan((user + system) * 1.1 + 200_000);
  });

  it('resident memory agrees with what the process says of itself', () => {
    const { megabytes, highestMegabytes } = residentOf(process.pid);
    const own = process.memoryUsage.rss() / 1024 ** 2;
    expect(megabytes).toBeGreaterThan(own * 0.7);
    expect(megabytes).toBeLessThan(own * 1.3);
    expect(highestMegabytes).toBeGreaterThanOrEqual(megabytes);
  });
});
