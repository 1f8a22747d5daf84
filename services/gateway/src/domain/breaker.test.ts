import { describe, expect, it } from 'vitest';
import { Breaker } from './breaker.js';

describe('Breaker', () => {
  it('opens after so many failures in a row, and lets one try through after each rest', () => {
    const breaker = new Breaker(2, 100);
    breaker.failed(0);
    expect(breaker.permits(0)).toBe(true);
    breaker.failed(0);
    expect(breaker.permits(50)).toBe(false);
    expect(breaker.permits(100)).toBe(true);
    expect(breaker.permits(101)).toBe(false);
    expect(breaker.permits(200)).toBe(true);
  });

  it('closes at the first success, which also ends the row', () => {
    const breaker = new Breaker(2, 100);
    breaker.failed(0);
    breaker.succeeded();
    breaker.failed(0);
    expect(breaker.isOpen).toBe(false);
    breaker.failed(0);
    breaker.succeeded();
    expect(breaker.permits(1)).toBe(true);
  });
});
