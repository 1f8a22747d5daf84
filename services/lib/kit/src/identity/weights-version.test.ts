import { describe, expect, it } from 'vitest';
import {
  baseVersion,
  isBaseVersion,
  isPolicyName,
  versionName,
  versionNumber,
  versionParts,
} from './weights-version.js';

describe('names of weights versions', () => {
  it('version names carry policy and number, and give them back', () => {
    expect(versionName('acme', 12)).toBe('acme-v12');
    expect(versionParts('acme-v12')).toEqual({ policy: 'acme', number: 12 });
    expect(versionParts('acme-v1-v2')).toEqual({ policy: 'acme-v1', number: 2 });
    expect(versionNumber('acme', 'acme-v12')).toBe(12);
    expect(baseVersion('acme')).toBe('acme-v0');
    expect(isBaseVersion('acme-v0')).toBe(true);
    expect(isBaseVersion('acme-v10')).toBe(false);
  });

  it.each(['acme', 'acme-v', 'acme-v01', 'acme-v-1', 'acme-v1.5', '-v1', 'acme-v9999999999999999', 'acme-v1 '])(
    'reads no version name out of %j',
    (name) => {
      expect(versionParts(name)).toBeUndefined();
    },
  );

  it('version names of another policy have no number here', () => {
    expect(versionNumber('acme', 'other-v1')).toBeUndefined();
    expect(versionNumber('acme', 'acme-v1-v2')).toBeUndefined();
  });

  it.each(['acme', 'acme-v', 'a_1'])('%j may name a policy', (name) => {
    expect(isPolicyName(name)).toBe(true);
  });

  it.each(['', 'qwen2.5', 'a b', 'acme-v1', 'a'.repeat(65)])('%j names no policy', (name) => {
    expect(isPolicyName(name)).toBe(false);
  });
});
