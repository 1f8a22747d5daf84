import { repositoryRoot } from '@backtalk/kit/testing';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

import { measureRelations } from './measure.js';
import { readTopics } from './wish-pairs.js';

describe('wishes of many topics, in several wordings each', () => {
  const report = measureRelations(readTopics(join(repositoryRoot(), 'test/relations/topics.jsonl')));

  it('never takes a wish for what cannot hold beside it', () => {
    expect(report.oppositesMerged).toBe(0);
  });

  it('takes at most two in a hundred others for the same', () => {
    expect(report.falseMerges).toBeLessThanOrEqual(0.02);
  });

  it('finds most of the same and most of the opposite ones', () => {
    expect(report.sameFound).toBeGreaterThan(0.75);
    expect(report.oppositesFound).toBeGreaterThan(0.7);
  });
});
