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
  const own = { turn: 'turn_a', session: 'session_a', parent: '', continuedBy: '', completedSequence: 3 };
  const consent = 'yes' as const;
  return { ...owner, ...own, consent, earlierAnswers: ['k1'], question: '', ...fields };
}

const agreed = { train: true, source: 'default' };
const open = { isClosed: false, consent: agreed };
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
    expect(placementOf(request(), newest, entry(), open).entry).toMatchObject({
      session: 'session_a',
      parent: 'turn_a',
    });
    expect(placementOf(request({ declaredSession: 'mine' }), newest, entry(), open).entry.session).toBe('session_b');
  });

  it('begins a new session where the wanted one is over or unknown', () => {
    expect(wantedSession(request(), entry())).toBe('session_a');
    expect(placementOf(request(), newest, entry(), { isClosed: true, consent: agreed }).entry.session).toBe(
      'session_b',
    );
    const unknown = request({ provisionalSession: '', turn: 'turn_x' });
    expect(placementOf(unknown, undefined, undefined, open).entry.session).toBe('session_x');
  });

  it('waits for its newest answer, by any name, until that one is its parent', () => {
    expect(placementOf(request(), newest, entry(), open).waitsFor).toEqual([]);
    expect(placementOf(request(), older, entry(), open).waitsFor).toEqual(['k2']);
    expect(placementOf(request(), undefined, undefined, open).waitsFor).toEqual(['k2']);
    const declared = request({ declaredSession: 'mine' });
    expect(placementOf(declared, undefined, undefined, open).waitsFor).toEqual(['k2', 'session session_b']);
    expect(placementOf(request({ answerKeys: [] }), undefined, undefined, open).waitsFor).toEqual([]);
  });

  it('keeps what its consent came to', () => {
    const refused = { isClosed: false, consent: { train: false, source: 'session' } };
    expect(placementOf(request(), newest, entry(), refused).entry.consent).toBe('no');
    expect(placementOf(request(), newest, entry(), open).entry.consent).toBe('yes');
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
    const fact = continuationOf(
      { message: request(), messages },
      link,
      { parent: entry({ parent: 'turn_0' }), consent: agreed },
      before,
    );
    expect(fact).toMatchObject({ turn: 'turn_a', continuedBy: 'turn_b', session: 'session_a', parent: 'turn_0' });
    expect(fact).toMatchObject({ main: true, consent: { train: true, source: 'default' } });
    expect(fact?.nextState).toMatchObject([{ provenance: Provenance.PROVENANCE_USER, text: 'too long' }]);
  });

  it('gives nothing when a client asks for itself, or nothing was said', () => {
    const title = request({ declaredTurnType: 'title' });
    expect(
      continuationOf({ message: title, messages }, link, { parent: entry(), consent: agreed }, before),
    ).toBeUndefined();
    const silent = { message: request(), messages: messages.slice(0, 2) };
    expect(continuationOf(silent, link, { parent: entry(), consent: agreed }, before)).toBeUndefined();
  });

  it('a turn is not learned from when its own consent or that of the request is missing', () => {
    const trained = (parent: TurnEntry, consent = agreed) =>
      continuationOf({ message: request(), messages }, link, { parent, consent }, before)?.consent;
    expect(trained(entry({ consent: 'no' }))).toEqual({ train: false, source: 'session' });
    expect(trained(entry({ consent: undefined }))).toEqual({ train: false, source: 'unknown' });
    expect(trained(entry(), { train: false, source: 'request' })?.train).toBe(false);
    expect(trained(entry())?.train).toBe(true);
  });
});
