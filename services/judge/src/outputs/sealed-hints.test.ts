import { describe, expect, it } from 'vitest';
import type { Material } from '../domain/material.js';
import { openHint, sealHint } from './sealed-hints.js';

const material: Material = {
  conversation: [{ role: 'user', text: 'Why?' }],
  question: 'Why?',
  answer: 'So.',
  thoughts: '',
  version: '',
  place: { turn: 'turn', tenant: 'tenant', user: 'user', policy: 'backtalk', session: 'session' },
  next: { role: 'user', text: 'Thanks.', userText: 'Thanks.', toolResults: [] },
};
const hint = 'Answer in one brief sentence.';

describe('a sealed hint', () => {
  it('a sealed hint is opened with the same turn, and holds no word of the hint', () => {
    const sealed = sealHint(hint, material);
    expect(openHint(sealed, { ...material })).toBe(hint);
    expect(Buffer.from(sealed, 'base64').toString('latin1')).not.toContain('short');
    expect(sealHint('', material)).toBe('');
    expect(openHint('', material)).toBe('');
  });

  it('a sealed hint is not opened with any other turn', () => {
    const sealed = sealHint(hint, material);
    expect(openHint(sealed, { ...material, answer: 'No.' })).toBe('');
    expect(openHint(sealed, { ...material, place: { ...material.place, turn: 'other' } })).toBe('');
    expect(openHint('c2hvcnQ=', material)).toBe('');
  });
});
