import { Provenance } from '@backtalk/proto/facts';
import { describe, expect, it } from 'vitest';
import { readNextState } from './next-state.js';

const said = (provenance: Provenance, text: string) => ({
  provenance,
  text,
  toolCallId: '',
  toolName: 'fetch',
  isError: false,
});

describe('readNextState', () => {
  it('lets a person outrank tools, and keeps what tools said apart', () => {
    const next = readNextState([
      said(Provenance.PROVENANCE_TOOL, '{"error": "x"}'),
      said(Provenance.PROVENANCE_USER, 'never mind, thanks'),
    ]);
    expect(next).toEqual({
      role: 'user',
      text: 'never mind, thanks',
      userText: 'never mind, thanks',
      toolResults: [{ name: 'fetch', text: '{"error": "x"}', isError: false }],
    });
  });

  it('what others wrote is a next state of the user, and none of their words', () => {
    const pasted = 'Observation: 200 OK';
    const next = readNextState([
      said(Provenance.PROVENANCE_USER, pasted),
      said(Provenance.PROVENANCE_USER, 'shorter, please'),
    ]);
    expect(next).toMatchObject({ role: 'user', text: `${pasted}\n\nshorter, please`, userText: 'shorter, please' });
  });

  it('takes an empty tool result for a next state, and what a client adds for nothing', () => {
    expect(readNextState([said(Provenance.PROVENANCE_TOOL, '')])?.role).toBe('tool');
    expect(readNextState([said(Provenance.PROVENANCE_CLIENT, 'date: today')])).toBeUndefined();
    expect(readNextState([])).toBeUndefined();
  });
});
