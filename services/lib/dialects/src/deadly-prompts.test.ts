import { describe, expect, it } from 'vitest';
import { DeadlyPrompts } from './deadly-prompts.js';

const prompt = (content: string) => ({ messages: [{ role: 'user', content }], tools: [] });

describe('DeadlyPrompts', () => {
  it('a prompt rests after two engines ended on it, for a while', () => {
    const deadly = new DeadlyPrompts();
    expect(deadly.died(prompt('a'), 'one', 0)).toBe(false);
    expect(deadly.restMs(prompt('a'), 1)).toBe(0);
    expect(deadly.died(prompt('a'), 'two', 1_000)).toBe(true);
    expect(deadly.restMs(prompt('a'), 2_000)).toBe(599_000);
    expect(deadly.restMs(prompt('b'), 2_000)).toBe(0);
    expect(deadly.restMs(prompt('a'), 601_001)).toBe(0);
  });

  it('equal prompts at one engine count its death once, and again when it ends again later', () => {
    const deadly = new DeadlyPrompts();
    expect([deadly.died(prompt('a'), 'one', 0), deadly.died(prompt('a'), 'one', 5)]).toEqual([false, false]);
    expect(deadly.restMs(prompt('a'), 10)).toBe(0);
    expect(deadly.died(prompt('a'), 'one', 60_000)).toBe(true);
  });

  it('an answer clears a prompt', () => {
    const deadly = new DeadlyPrompts();
    deadly.died(prompt('a'), 'one', 0);
    deadly.answered(prompt('a'));
    expect(deadly.died(prompt('a'), 'two', 1)).toBe(false);
  });

  it('remembers a bounded number of prompts', () => {
    const deadly = new DeadlyPrompts();
    for (let at = 0; at < 1_001; at += 1)
      for (const engine of ['one', 'two']) deadly.died(prompt(String(at)), engine, 0);
    expect(deadly.restMs(prompt('0'), 1)).toBe(0);
    expect(deadly.restMs(prompt('1000'), 1)).toBeGreaterThan(0);
  });
});
