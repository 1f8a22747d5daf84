import { expect, it } from 'vitest';
import { FairTurns } from './fair-turns.js';

/** Turns that are given by hand, and who went on in them. */
function begin(bounds = { ofKey: 1, inAll: 2 }) {
  const next: (() => void)[] = [];
  const turns = new FairTurns((go) => next.push(go), bounds);
  const had: string[] = [];
  return {
    ask: (...keyIds: string[]) => {
      for (const keyId of keyIds) void turns.of(keyId).then(() => had.push(keyId));
    },
    /** Who has gone on since it was last asked. */
    had: async () => {
      await new Promise(setImmediate);
      return had.splice(0).join(' ');
    },
    turn: () => next.shift()?.(),
    pending: () => next.length,
  };
}

it('one that comes alone goes on at once, and the next one of its key in the next turn', async () => {
  const { had, ask, turn, pending } = begin();
  ask('eve', 'eve');
  expect(await had()).toBe('eve');
  turn();
  expect(await had()).toBe('eve');
  turn();
  expect(pending()).toBe(0);
  ask('eve');
  expect(await had()).toBe('eve');
});

it('one of another key goes on at once, however many of one key wait', async () => {
  const { had, ask, turn } = begin();
  ask(...Array.from({ length: 100 }, () => 'eve'));
  expect(await had()).toBe('eve');
  ask('bob');
  expect(await had()).toBe('bob');
  turn();
  expect(await had()).toBe('eve');
  ask('bob');
  expect(await had()).toBe('bob');
});

it('keys take turns where more of them wait than go on in one turn', async () => {
  const { had, ask, turn } = begin();
  ask('eve', 'eve', 'eve', 'ann', 'ann', 'bob', 'cat');
  expect(await had()).toBe('eve ann');
  const later: string[] = [];
  for (let turns = 0; turns < 4; turns += 1) {
    turn();
    later.push(await had());
  }
  expect(later).toEqual(['eve ann', 'bob cat', 'eve', '']);
});

it('a key goes on as often in one turn as it may, and no more often', async () => {
  const { had, ask, turn } = begin({ ofKey: 3, inAll: 4 });
  ask(...Array.from({ length: 5 }, () => 'eve'), 'bob', 'bob');
  expect(await had()).toBe('eve eve eve bob');
  turn();
  expect(await had()).toBe('eve eve bob');
});
