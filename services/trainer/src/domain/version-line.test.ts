import { WeightsStaged, WeightsStaged_Stage, WeightsTrained } from '@backtalk/proto/facts';
import { describe, expect, it } from 'vitest';

import { VersionLine } from './version-line.js';

const { STAGE_STABLE, STAGE_BURNED, STAGE_CANDIDATE, STAGE_RETIRED } = WeightsStaged_Stage;

function line(...parents: readonly [version: number, parent: number, stage?: WeightsStaged_Stage][]): VersionLine {
  const versions = new VersionLine('p');
  parents.forEach(([version, parent, stage], index) => {
    versions.trained(trained(version, parent), index);
    if (stage !== undefined) versions.staged(staged(version, stage), 100 + index);
  });
  return versions;
}

function trained(version: number, parent: number): WeightsTrained {
  return WeightsTrained.fromPartial({ policy: 'p', version: `p-v${version}`, parent: `p-v${parent}`, batch: version });
}

function staged(version: number, stage: WeightsStaged_Stage): WeightsStaged {
  return WeightsStaged.fromPartial({ policy: 'p', version: `p-v${version}`, stage });
}

describe('the next parent', () => {
  it('the next parent is the base while there is no version', () => {
    expect(line().nextParent()).toBe('p-v0');
  });

  it('the next parent is the newest version that is not burned', () => {
    expect(line([1, 0, STAGE_STABLE], [2, 1, STAGE_STABLE]).nextParent()).toBe('p-v2');
    expect(line([1, 0, STAGE_STABLE], [2, 1, STAGE_BURNED]).nextParent()).toBe('p-v1');
    expect(line([1, 0, STAGE_BURNED], [2, 0, STAGE_BURNED]).nextParent()).toBe('p-v0');
  });

  it('the next parent is never built upon a burned version', () => {
    expect(line([1, 0, STAGE_RETIRED], [2, 1, STAGE_BURNED], [3, 2, STAGE_STABLE]).nextParent()).toBe('p-v1');
  });

  it('a burned version stays burned whatever is staged later', () => {
    const versions = line([1, 0, STAGE_BURNED]);
    versions.staged(staged(1, STAGE_STABLE), 999);
    expect(versions.nextParent()).toBe('p-v0');
  });

  it('the next parent does not depend on the order in which facts arrive', () => {
    const versions = new VersionLine('p');
    versions.staged(staged(1, STAGE_BURNED), 8);
    versions.staged(staged(1, STAGE_CANDIDATE), 7);
    versions.trained(trained(1, 0), 1);
    versions.trained(trained(1, 0), 1);
    expect(versions.nextParent()).toBe('p-v0');
    expect(versions.versions()).toHaveLength(1);
  });
});

describe('versions since a batch', () => {
  it('burned ones, and what was built upon them, are no steps on the way', () => {
    const versions = line([1, 0, STAGE_STABLE], [2, 1, STAGE_BURNED], [3, 2, STAGE_STABLE], [4, 1, STAGE_STABLE]);
    const { batch = 0 } = versions.get('p-v1') ?? {};
    expect(versions.versionsAfter(batch)).toBe(1);
    expect(versions.versionsAfter(batch - 1)).toBe(2);
  });
});

describe('a version that came to nothing', () => {
  it('one that served is burned until a newer one stands', () => {
    const versions = line([1, 0, STAGE_STABLE], [2, 1, STAGE_STABLE]);
    expect(versions.cameToNothing(0)).toBe(false);
    versions.staged(staged(2, STAGE_BURNED), 900);
    expect(versions.cameToNothing(0)).toBe(true);
    versions.trained(trained(3, 1), 9);
    expect(versions.cameToNothing(0)).toBe(false);
    expect(line().cameToNothing(0)).toBe(false);
  });

  it('a first candidate that the gate burned may be followed by a second, and no third', () => {
    const versions = line([1, 0, STAGE_STABLE], [2, 1, STAGE_BURNED]);
    expect(versions.cameToNothing(0)).toBe(false);
    versions.trained(trained(3, 1), 9);
    versions.staged(staged(3, STAGE_BURNED), 901);
    expect(versions.cameToNothing(0)).toBe(true);
  });

  it('what was said of lessons since begins anew', () => {
    const versions = line([1, 0, STAGE_STABLE], [2, 1, STAGE_BURNED], [3, 1, STAGE_BURNED]);
    const { batch = 0 } = versions.get('p-v2') ?? {};
    expect(versions.cameToNothing(batch)).toBe(true);
    expect(versions.cameToNothing(batch + 1)).toBe(false);
  });
});

describe('what repeats another step', () => {
  const versions = line([1, 0, STAGE_STABLE], [2, 1, STAGE_BURNED], [3, 1, STAGE_BURNED], [4, 1, STAGE_BURNED]);
  const since = { resumedAfter: 0, lessonsChangedAt: 0 };

  it('burned versions hold training, and those that repeat others hold none', () => {
    expect(versions.heldFor(since)).toEqual(['p-v2', 'p-v3', 'p-v4']);
    expect(versions.heldFor(since, (batch) => batch === 3)).toEqual([]);
  });

  it('burned repetitions say nothing of what is new', () => {
    expect(versions.cameToNothing(0, (batch) => batch > 2)).toBe(false);
    expect(versions.cameToNothing(0, (batch) => batch > 3)).toBe(true);
  });
});

describe('an undecided candidate', () => {
  it('a candidate is the newest version until it is stable or burned', () => {
    const versions = line([1, 0, STAGE_STABLE], [2, 1]);
    expect(versions.undecided()).toBe('p-v2');
    versions.staged(staged(2, STAGE_CANDIDATE), 200);
    expect(versions.undecided()).toBe('p-v2');
    versions.staged(staged(2, STAGE_STABLE), 201);
    expect(versions.undecided()).toBeUndefined();
  });

  it('a candidate does not come back when an old fact is read again', () => {
    const versions = line([1, 0]);
    versions.staged(staged(1, STAGE_STABLE), 10);
    versions.staged(staged(1, STAGE_CANDIDATE), 9);
    expect(versions.undecided()).toBeUndefined();
  });
});

describe('how far back a turn lies', () => {
  it('counts steps of the ancestry, over gaps in the names', () => {
    const back = line(
      [1, 0, STAGE_STABLE],
      [2, 1, STAGE_BURNED],
      [3, 1, STAGE_STABLE],
      [5, 3, STAGE_STABLE],
    ).versionsBackFrom('p-v5');
    expect([back('p-v5'), back('p-v3'), back('p-v1'), back('p-v0')]).toEqual([0, 1, 2, 3]);
    expect(back('p-v2')).toBe('burned');
    expect(back('p-v4')).toBe('unknown');
  });
});

describe('the number of the newest version', () => {
  it('the newest version’s number is that of its name, not the count of versions', () => {
    expect(line().newestNumber()).toBe(0);
    expect(line([1, 0, STAGE_STABLE], [4, 1, STAGE_STABLE]).newestNumber()).toBe(4);
  });
});
