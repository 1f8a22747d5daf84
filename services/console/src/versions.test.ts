import { describe, expect, it } from 'vitest';
import { versionCards, type Version } from './versions.js';

const version: Version = {
  id: 'backtalk-v2',
  stage: 'stable',
  serving: false,
  why: 'gate passed',
  previous: 'backtalk-v1',
  staged_at: '2026-01-01T00:00:00.000Z',
  compared: [
    { question: 'Why is the sky blue?', before: 'Light scatters.', after: '- Light scatters' },
    { question: 'Hello?', before: 'Hi.', after: 'Hi.' },
  ],
};

describe('cards of versions', () => {
  it('a card shows the answers that became others, and counts those that did not', () => {
    const [card] = versionCards([version]);
    expect(card?.changed).toEqual([version.compared[0]]);
    expect(card?.about).toBe('1 of 2 answers to the same questions are others than those of backtalk-v1');
  });

  it('cards say which version answers now, and which were taken back and why', () => {
    const cards = versionCards([
      { ...version, serving: true },
      version,
      { ...version, stage: 'burned', why: 'drift 31 nats' },
      { ...version, stage: 'later', previous: null },
    ]);
    expect(cards.map(({ stage, label }) => [stage, label])).toEqual([
      ['serving', 'answers now'],
      ['stable', 'answered until a newer one'],
      ['burned', 'taken back'],
      ['later', 'later'],
    ]);
    expect(cards[2]?.about).toBe('drift 31 nats');
    expect(cards[3]?.about).toContain('the version before');
  });

  it('the base has a card where it answers again, whatever its policy is called, and none before the first step', () => {
    const base = { ...version, id: 'ada-v0' };
    const idsOf = (...versions: Version[]) => versionCards(versions).map(({ id }) => id);
    expect(idsOf(version, base)).toEqual(['backtalk-v2']);
    expect(idsOf({ ...base, serving: true })).toEqual([]);
    expect(versionCards([version, { ...base, serving: true }])[1]).toMatchObject({
      id: 'ada-v0',
      label: 'answers now',
      about: 'the model as it came',
      changed: [],
    });
  });

  it('a card of a version that was asked nothing says nothing', () => {
    expect(versionCards([{ ...version, compared: [] }])[0]).toMatchObject({ about: '', changed: [] });
  });
});
