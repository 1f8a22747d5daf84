import { describe, expect, it } from 'vitest';
import { readPlanted } from '../outputs/labelled-set.js';
import { plantedBeside, plantedMaterial, plantedOf, PlantedRecord, type PlantedTurn } from './planted.js';

const planted = readPlanted();
const [turn] = planted;

describe('the planted turns', () => {
  it('the planted turns have every verdict, some that speak to a judge, and words that a judge reads', () => {
    expect(new Set(planted.map(({ label }) => label)).size).toBe(3);
    expect(planted.filter(({ injected }) => injected).length).toBeGreaterThanOrEqual(6);
    expect(new Set(planted.map(({ next }) => next)).size).toBe(planted.length);
    for (const one of planted) expect(plantedMaterial(one, 'planted-0-x')?.next.role).toBe('user');
  });

  it('planted turns stand beside the share of turns that is asked for, each its own, the same on every judge', () => {
    const turns = Array.from({ length: 2_000 }, (_, n) => `turn${n}`);
    const beside = turns.map((one) => plantedBeside(one, 0.1, planted.length));
    const drawn = beside.filter((one) => one !== undefined);
    expect(drawn.length).toBeGreaterThan(150);
    expect(drawn.length).toBeLessThan(250);
    expect(new Set(drawn.map((one) => plantedOf(one, planted)?.id)).size).toBe(planted.length);
    expect(turns.map((one) => plantedBeside(one, 0.1, planted.length))).toEqual(beside);
    expect(turns.every((one) => plantedBeside(one, 0, planted.length) === undefined)).toBe(true);
  });

  it('a planted turn of a release that has more of them is unknown', () => {
    expect(plantedOf('planted-9999-turn', planted)).toBeUndefined();
  });
});

describe('the record of planted turns', () => {
  const add = (record: PlantedRecord, count: number, isRight: boolean, injected = false) => {
    const one: PlantedTurn = { id: 'p', question: '', answer: '', next: '', ...turn, label: 'satisfied', injected };
    let figures = { accuracy: 0, flips: 0, isTrusted: true };
    for (let n = 0; n < count; n += 1) figures = record.add('reader', one, isRight ? 1 : -1);
    return figures;
  };

  it('trusts until enough were judged, and from then on by the newest forty', () => {
    const record = new PlantedRecord(0.5);
    expect(add(record, 19, false).isTrusted).toBe(true);
    expect(add(record, 1, false)).toEqual({ accuracy: 0, flips: 0, isTrusted: false });
    expect(add(record, 19, true).isTrusted).toBe(false);
    expect(add(record, 1, true)).toMatchObject({ accuracy: 0.5, isTrusted: true });
    expect(add(record, 20, true).accuracy).toBe(1);
  });

  it('a young record wants a turn planted beside every one, until twenty were judged or a hundred planted, where any are wanted', () => {
    const judged = new PlantedRecord(0.5);
    add(judged, 19, true);
    expect([judged.share(0.02), judged.share(0)]).toEqual([1, 0]);
    add(judged, 1, true);
    expect(judged.share(0.02)).toBe(0.02);
    const unanswered = new PlantedRecord(0.5);
    for (let n = 0; n < 99; n += 1) unanswered.plantedOne();
    expect(unanswered.share(0.02)).toBe(1);
    unanswered.plantedOne();
    expect(unanswered.share(0.02)).toBe(0.02);
  });

  it('tells those that were swayed from those that were wrong', () => {
    const record = new PlantedRecord(0.5);
    add(record, 10, false);
    add(record, 3, true, true);
    expect(add(record, 1, false, true)).toMatchObject({ flips: 0.25 });
  });

  it('counts votes as they are while the judge is trusted, and as null by name while it is not', () => {
    const record = new PlantedRecord(0.5);
    const votes = [{ seed: 7, valid: true, verdict: 1, hint: 'Be brief.' } as const];
    expect(record.counted('reader', votes)).toEqual(votes);
    add(record, 20, false);
    const untrusted = [{ seed: 7, valid: false, reason: 'untrusted' }];
    expect(record.counted('reader', votes)).toEqual(untrusted);
    // No engine gave a vote.
    expect(record.counted('', votes)).toEqual(untrusted);
  });

  it('a model that takes another’s place is watched anew from its first votes, and the one before it as it was', () => {
    const record = new PlantedRecord(0.5);
    const votes = [{ seed: 7, valid: true, verdict: 1, hint: '' } as const];
    add(record, 20, false);
    expect(record.share(0.02)).toBe(0.02);
    expect(record.counted('another', votes)).toEqual(votes);
    expect(record.share(0.02)).toBe(1);
    expect(record.counted('reader', votes)).toEqual([{ seed: 7, valid: false, reason: 'untrusted' }]);
  });

  it('the models that voted last are remembered, of however many', () => {
    const record = new PlantedRecord(0.5);
    const votes = [{ seed: 7, valid: true, verdict: 1, hint: '' } as const];
    add(record, 20, false);
    for (let n = 0; n < 8; n += 1) record.counted(`model ${n}`, votes);
    expect(record.counted('reader', votes)).toEqual(votes);
  });
});
