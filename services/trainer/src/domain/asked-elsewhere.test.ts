import { describe, expect, it } from 'vitest';

import { isAskedElsewhere } from './asked-elsewhere.js';

function elsewhere(first: string | undefined, second: string | undefined): boolean {
  const known = [['t1', first] as const, ['t2', second] as const].flatMap(([turn, question]) =>
    question === undefined ? [] : [[turn, question] as const],
  );
  return isAskedElsewhere([{ turn: 't1', tenant: 't', user: 'a' }], 't2', new Map(known));
}

describe('isAskedElsewhere', () => {
  it.each([
    ['What is the capital of Norway?', 'what is the capital of norway'],
    ['What is the capital of Norway?', 'Capital of Norway?'],
    ['Wie heißt die Hauptstadt von Norwegen?', 'Wie heißt die Hauptstadt von Norwegen nochmal?'],
    ['挪威的首都是哪里', '挪威的首都是哪里'],
    ['澳大利亚的首都是哪里？', '请问澳大利亚的首都是哪里？'],
    ['オーストラリアの首都はどこですか', 'オーストラリアの首都はどこ'],
  ])('takes "%s" and "%s" for one question', (first, second) => expect(elsewhere(first, second)).toBe(false));

  it.each([
    ['What is the capital of Norway?', 'What is a good recipe for bread?'],
    ['How do I bake bread?', 'How do I fix a fence?'],
    ['挪威的首都是哪里', '面包怎么烤'],
  ])('takes "%s" and "%s" for two', (first, second) => expect(elsewhere(first, second)).toBe(true));

  it('takes what the log holds no more, or what has no words, for the same', () => {
    expect(elsewhere(undefined, 'How do I bake bread?')).toBe(false);
    expect(elsewhere('How do I bake bread?', undefined)).toBe(false);
    expect(elsewhere('!!', 'How do I bake bread?')).toBe(false);
  });

  it('asks whether any of a lesson’s turns was asked something else', () => {
    const cases = ['t1', 't2'].map((turn) => ({ turn, tenant: 't', user: 'a' }));
    const questions = new Map([
      ['t1', 'How do I bake bread?'],
      ['t2', 'Who painted this?'],
      ['t3', 'How do I bake bread'],
    ]);
    expect(isAskedElsewhere(cases, 't3', questions)).toBe(true);
    expect(isAskedElsewhere(cases.slice(0, 1), 't3', questions)).toBe(false);
  });
});
