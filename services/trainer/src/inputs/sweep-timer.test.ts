import { FakeClock } from '@backtalk/kit/testing';
import { WeightsStaged, WeightsStaged_Stage, WeightsTrained } from '@backtalk/proto/facts';
import { WeightsManifest } from '@backtalk/proto/weights';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { VersionLine } from '../domain/version-line.js';
import type { PolicyState } from './policy-state.js';
import { sweepFiles } from './sweep-timer.js';
import type { TrainerTools } from './trainer-tools.js';

const everyMs = 3_600_000;
const graceMs = 30_000;
const beginMs = 1_700_000_000_000;

describe('the sweep of a policy', () => {
  const deleted: string[] = [];
  const state = { policy: 'p', asked: undefined as { id: string } | undefined, remade: new Map<string, number>() };
  let clock: FakeClock;
  let stop: AbortController;
  let sweeping: Promise<void>;

  beforeEach(() => {
    deleted.length = 0;
    state.asked = undefined;
    state.remade.clear();
    clock = new FakeClock(beginMs);
    stop = new AbortController();
    const line = new VersionLine('p');
    for (let n = 1; n <= 5; n += 1) {
      line.trained(
        WeightsTrained.fromPartial({ version: `p-v${n}`, parent: `p-v${n - 1}`, manifestDigest: `${n}` }),
        n,
      );
      line.staged(
        WeightsStaged.fromPartial({ version: `p-v${n}`, stage: WeightsStaged_Stage.STAGE_RETIRED }),
        1_000 + n,
      );
    }
    const blobs = {
      has: (digest: string) => Promise.resolve(!deleted.includes(digest)),
      delete: (digest: string) => Promise.resolve(void deleted.push(digest)),
    };
    const manifest = (n: string) =>
      Promise.resolve(
        WeightsManifest.fromPartial({ trainingState: [{ name: 'optimizer.safetensors', digest: `state${n}` }] }),
      );
    const events = { filesSwept: () => undefined, sweepFailed: () => undefined };
    const tools = { store: { blobs, manifest }, events } as unknown as TrainerTools;
    const shared = { ...state, ledger: () => Promise.resolve({ line }) };
    // What a test changes is what the sweep sees.
    Object.defineProperty(shared, 'asked', { get: () => state.asked });
    const times = { sweepEveryMs: everyMs, sweepGraceMs: graceMs };
    sweeping = sweepFiles(tools, shared as unknown as PolicyState, times, clock, stop.signal);
  });

  afterEach(async () => {
    stop.abort();
    await sweeping;
  });

  it('a sweep does not wait for the first hour, since a process may end before it', async () => {
    await clock.advance(60_000);
    expect(deleted).toEqual(['state1', 'state2']);
  });

  it('a sweep leaves all while versions are made again, and their files for as long as those of a new version', async () => {
    state.asked = { id: 'a' };
    await clock.advance(60_000);
    expect(deleted).toEqual([]);
    state.asked = undefined;
    state.remade.set('state1', beginMs + everyMs + 50_000);
    await clock.advance(everyMs);
    expect(deleted).toEqual(['state2']);
    await clock.advance(everyMs);
    expect(deleted).toEqual(['state2', 'state1']);
    expect(state.remade.size).toBe(0);
  });
});
