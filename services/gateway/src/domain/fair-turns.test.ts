import { expect, it } from 'vitest';
import { FairTurns } from './fair-turns.js';

/** Turns that are given by hand, and who had them. */
function begin() {
  const next: (() => void)[] = [];
  const turns = new FairTurns((go) => next.push(go));
  const had: string[] = [];
  return {
    had,
    ask: (keyId: string) => void turns.of(keyId).then(() => had.push(keyId)),
    turn: async () => {
      next.shift()?.();
      await new Promise(setImmediate);
    },
    pending: () => next.length,
  };
}

it('one that comes alone goes on at once, and the next one in the next turn', async () => {
  const { had, ask, turn, pending } = begin();
  ask('eve');
  ask('eve');
  await new Promise(setImmediate);
  expect(had).toEqual(['eve']);
  await turn();
  expect(had).toEqual(['eve', 'eve']);
  await turn();
  expect(pending()).toBe(0);
  ask('eve');
  await new Promise(setImmediate);
  expect(had).toHaveLength(3);
});

it('keys take turns, however many of one wait', async () => {
  const { had, ask, turn } = begin();
  for (let asked = 0; asked < 100; asked += 1) ask('eve');
  ask('ann');
  ask('ann');
  ask('bob');
  for (let turns = 0; turns < 7; turns += 1) await turn();
  expect(had).toEqual(['eve', 'eve', 'ann', 'bob', 'eve', 'ann', 'eve', 'eve']);
});
