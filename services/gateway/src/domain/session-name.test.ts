import { describe, expect, it } from 'vitest';
import { declaredSession, sessionInBody, sessionOfName, sessionOfTurn, turnOfSession } from './session-name.js';

const headers = (given: Record<string, string>) => (name: string) => given[name];

describe('declaredSession', () => {
  it('reads headers before body keys', () => {
    const body = { session_id: 'from-body', turn_type: 'side', session_done: true, group_id: 'task' };
    expect(declaredSession(headers({}), sessionInBody(body))).toEqual({
      session: 'from-body',
      turnType: 'side',
      done: true,
      group: 'task',
    });
    const header = headers({
      'x-session-id': 'from-header',
      'x-turn-type': 'main',
      'x-session-done': '0',
      'x-group-id': 'other',
    });
    expect(declaredSession(header, sessionInBody(body))).toEqual({
      session: 'from-header',
      turnType: 'main',
      done: false,
      group: 'other',
    });
  });

  it.each(['1', 'true', 'Yes', ' on '])('takes %j as done', (word) => {
    expect(declaredSession(headers({ 'x-session-done': word }), sessionInBody({})).done).toBe(true);
  });

  it('reads a name beyond ASCII from a header as from a body, whether its bytes are UTF-8 or Latin-1', () => {
    const inBody = sessionInBody({ session_id: 'Müller 山' }).session;
    const bytes = Buffer.from('Müller 山').toString('latin1');
    const inHeader = (value: string) => declaredSession(headers({ 'x-session-id': value }), sessionInBody({})).session;
    expect(inHeader(bytes)).toBe(inBody);
    expect(inHeader('Müller')).toBe('Müller');
  });

  it('refuses names that are no text or far too long', () => {
    expect(() => sessionInBody({ session_id: 5 })).toThrow('session_id');
    expect(() => declaredSession(headers({ 'x-session-id': 'x'.repeat(257) }), sessionInBody({}))).toThrow('256');
  });
});

describe('session ids', () => {
  it('a session’s id leads back to the turn that began it', () => {
    const turn = 'turn_0190a2b3c4d5e6f708091a2b3c4d5e6f';
    expect(turnOfSession(sessionOfTurn(turn))).toBe(turn);
    expect(turnOfSession('my chat')).toBeUndefined();
  });

  it('session ids of one name differ between users', () => {
    const ids = [
      sessionOfName('k', 't', 'u', 'a'),
      sessionOfName('k', 't', 'v', 'a'),
      sessionOfName('k', 's', 'u', 'a'),
    ];
    expect(new Set(ids).size).toBe(3);
  });
});
