import { describe, expect, it } from 'vitest';
import { BatchChain } from '../domain/batch-chain.js';
import { SettledTurns } from '../domain/settled-turns.js';
import { VersionLine } from '../domain/version-line.js';
import { PolicyState } from './policy-state.js';

const ledger = () => ({
  chain: new BatchChain('p'),
  line: new VersionLine('p'),
  settled: new SettledTurns(),
  changedAt: 0,
  forgotten: [],
});

describe('PolicyState', () => {
  it('gives the ledger that was read last, also to deliveries that asked while it was read', async () => {
    const state = new PolicyState('p');
    const early = state.ledger();
    const [first, second] = [ledger(), ledger()];
    state.ledgerRead(first);
    expect(await early).toBe(first);
    state.invalidate();
    const meanwhile = state.ledger();
    state.ledgerRead(second);
    expect(await meanwhile).toBe(second);
    expect(await state.ledger()).toBe(second);
  });

  it('refuses deliveries that wait for a ledger that is read here no more', async () => {
    const state = new PolicyState('p');
    state.ledgerRead(ledger());
    state.invalidate();
    const waiting = state.ledger();
    state.close();
    await expect(waiting).rejects.toMatchObject({ code: 'not_leading', retry: 'later' });
    await expect(state.ledger()).rejects.toMatchObject({ code: 'not_leading' });
  });
});
