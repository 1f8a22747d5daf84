import { describe, expect, it } from 'vitest';

import { contentStems } from './same-hint.js';

describe('content stems', () => {
  it('content stems drop courtesy and generic verbs', () => {
    expect([...contentStems('Please answer in one short sentence.')].sort()).toEqual(['one', 'sentenc', 'short']);
  });

  it('content stems fold synonyms of length', () => {
    expect(contentStems('Be brief and concise')).toEqual(new Set(['short']));
  });

  it('content stems read "not so long" and "too long" as a wish for the short', () => {
    expect(contentStems("That's way too long.")).toEqual(new Set(['short']));
    expect(contentStems('Not so long, please!')).toEqual(new Set(['short']));
    expect(contentStems('Make it longer')).toEqual(new Set(['long']));
  });
});
