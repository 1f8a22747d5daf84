import { Provenance, TurnOpened } from '@backtalk/proto/facts';
import { describe, expect, it } from 'vitest';
import { readMessages } from './messages.js';
import { linkTo } from './parent.js';
import { continuationOf, couldBeNewer, isAheadOfLog, placementOf, wantedSession, type TurnEntry } from './placement.js';

const owner = { tenant: 'tenant', user: 'user', policy: 'backtalk' };

function request(fields: Partial<TurnOpened> = {}): TurnOpened {
  const answerKeys = ['k1', 'k2'];
  return TurnOpened.fromPartial({ ...owner, turn: 'turn_b', provisionalSession: 'session_b', answerKeys, ...fields });
}

function entry(fields: Partial<TurnEntry> = {}): TurnEntry {
  const own = { turn: 'turn_a', session: 'session_a', parent: '', continuedBy: '', completedSequence: 3, train: true };
  return { ...owner, ...own, ...fields };
}

const newest = linkTo('turn_b', 'turn_a', 1, '');
const older = linkTo('turn_b', 'turn_a', 0, '');

describe('isAheadOfLog', () => {
  it('holds a request back until the answer that the gateway saw is in the log', () => {
    const seen = request({ provisionalParent: 'turn_a' });
    expect(isAheadOfLog(seen, undefined)).toBe(true);
    expect(isAheadOfLog(seen, entry({ completedSequence: 0 }))).toBe(true);
    expect(isAheadOfLog(seen, entry())).toBe(false);
    expect(isAheadOfLog(request(), undefined)).toBe(false);
  });
});

describe('couldBeNewer', () => {
  it('waits for answers on their way when an older one was found, or none in a declared session', () => {
    expect(couldBeNewer(request(), older)).toBe(true);
    expect(couldBeNewer(request(), newest)).toBe(false);
    expect(couldBeNewer(request({ declaredSession: 'mine' }), undefined)).toBe(true);
    expect(couldBeNewer(request({ declaredSession: 'mine', answerKeys: [] }), undefined)).toBe(false);
    expect(couldBeNewer(request(), undefined)).toBe(false);
  });
});

describe('placementOf', () => {
  it('puts a request into the session of its parent, and into its own where a client declares one', () => {
    expect(placementOf(request(), newest, entry(), false).entry).toMatchObject({
      session: 'session_a',
      parent: 'turn_a',
    });
    expect(placementOf(request({ declaredSession: 'mine' }), newest, entry(), false).entry.session).toBe('session_b');
  });

  it('begins a new session where the wanted one is over or unknown', () => {
    expect(wantedSession(request(), entry())).toBe('session_a');
    expect(placementOf(request(), newest, entry(), true).entry.session).toBe('session_b');
    const unknown = request({ provisionalSession: '', turn: 'turn_x' });
    expect(placementOf(unknown, undefined, undefined, false).entry.session).toBe('session_x');
  });

  it('waits for its newest answer, by any name, until that one is its parent', () => {
    expect(placementOf(request(), newest, entry(), false).waitsFor).toEqual([]);
    expect(placementOf(request(), older, entry(), false).waitsFor).toEqual(['k2']);
    expect(placementOf(request(), undefined, undefined, false).waitsFor).toEqual(['k2']);
    const declared = request({ declaredSession: 'mine' });
    expect(placementOf(declared, undefined, undefined, false).waitsFor).toEqual(['k2', 'session session_b']);
    expect(placementOf(request({ answerKeys: [] }), undefined, undefined, false).waitsFor).toEqual([]);
  });

  it('takes over a refusal to be learned from', () => {
    expect(placementOf(request(), newest, entry({ train: false }), false).entry.train).toBe(false);
    const refusing = request({ consent: { train: false, source: 'request' } });
    expect(placementOf(refusing, newest, entry(), false).entry.train).toBe(false);
    expect(placementOf(request(), newest, entry(), false).entry.train).toBe(true);
  });
});

describe('continuationOf', () => {
  const messages = readMessages([
    { role: 'user', content: 'why?' },
    { role: 'assistant', content: 'air' },
    { role: 'user', content: 'too long' },
  ]);
  const link = linkTo('turn_b', 'turn_a', 0, '');
  const before = { message: request({ turn: 'turn_a', answerKeys: [] }), messages: messages.slice(0, 1) };

  it('gives the parent what was said after its answer', () => {
    const fact = continuationOf({ message: request(), messages }, link, entry({ parent: 'turn_0' }), before);
    expect(fact).toMatchObject({ turn: 'turn_a', continuedBy: 'turn_b', session: 'session_a', parent: 'turn_0' });
    expect(fact).toMatchObject({ main: true, consent: { train: true, source: 'default' } });
    expect(fact?.nextState).toMatchObject([{ provenance: Provenance.PROVENANCE_USER, text: 'too long' }]);
  });

  it('gives nothing when a client asks for itself, or nothing was said', () => {
    const title = request({ declaredTurnType: 'title' });
    expect(continuationOf({ message: title, messages }, link, entry(), before)).toBeUndefined();
    const silent = { message: request(), messages: messages.slice(0, 2) };
    expect(continuationOf(silent, link, entry(), before)).toBeUndefined();
  });

  it('a turn is not learned from when it, its session or the request refuses', () => {
    const refusing = { consent: { train: false, source: 'request' } };
    const trained = (parent: TurnEntry, own: Partial<TurnOpened>, earlier: Partial<TurnOpened>) =>
      continuationOf({ message: request(own), messages }, link, parent, {
        message: { ...before.message, ...earlier },
        messages: before.messages,
      })?.consent?.train;
    expect(trained(entry({ train: false }), {}, {})).toBe(false);
    expect(trained(entry(), refusing, {})).toBe(false);
    expect(trained(entry(), {}, refusing)).toBe(false);
    expect(trained(entry(), {}, {})).toBe(true);
  });
});
