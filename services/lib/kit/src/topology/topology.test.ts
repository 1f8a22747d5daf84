import { TurnJudged, TurnOpened } from '@backtalk/proto/facts';
import { describe, expect, it } from 'vitest';
import { catalogue, fact, factNames } from './catalogue.js';
import { permissionsOf } from './permissions.js';
import { durableOf, idsOfSubject, subjectFilter, subjectOf } from './subjects.js';
import { brokerServices } from './users.js';

describe('subjects', () => {
  it('subjects stand in the order of the catalogue, and say which fact it is', () => {
    const judged = TurnJudged.fromPartial({ tenant: 'a', user: 'b', policy: 'p', turn: 't', revision: 2 });
    expect(subjectOf('turnJudged', judged)).toBe('backtalk.turn.judged.a.b.p.t.2');
    expect(idsOfSubject('turnJudged', subjectOf('turnJudged', judged))).toEqual({
      tenant: 'a',
      user: 'b',
      policy: 'p',
      turn: 't',
      revision: '2',
    });
    expect(subjectFilter('turnJudged', { policy: 'p' })).toBe('backtalk.turn.judged.*.*.p.*.*');
    expect(subjectFilter('turnOpened')).toBe('backtalk.turn.opened.>');
    expect(() => subjectOf('turnOpened', TurnOpened.fromPartial({ turn: 'a.>' }))).toThrow();
  });

  it('subjects are unlike each other, so that a subject names one fact', () => {
    expect(new Set(factNames.map((name) => catalogue[name].subject)).size).toBe(factNames.length);
  });
});

describe('a row of the catalogue', () => {
  const row = {
    codec: TurnOpened,
    stream: 'TURNS',
    subject: 'turn.opened',
    kind: 'once',
    publishers: ['gateway'],
    readers: [],
    consumers: [],
    bytesMax: 1,
  } as const;

  it('names fields of its own message only: another one does not compile', () => {
    fact({ ...row, tokens: ['tenant', 'turn'] });
    // @ts-expect-error No field of the message.
    fact({ ...row, tokens: ['tenant', 'batch'] });
    // @ts-expect-error A field that no subject can hold.
    fact({ ...row, tokens: ['tenant', 'conversation'] });
    // @ts-expect-error A revision is no token of this fact.
    expect(subjectFilter('turnOpened', { revision: 1 })).toBe('backtalk.turn.opened.*.*.*');
  });
});

describe('permissions', () => {
  it('permissions let a service publish the facts that it owns and none besides', () => {
    for (const service of brokerServices) {
      const { publish } = permissionsOf(service, []);
      for (const name of factNames) {
        expect(publish.includes(subjectFilter(name))).toBe(catalogue[name].publishers.includes(service));
        const durable = `$JS.ACK.${catalogue[name].stream}.${durableOf(service, name)}.>`;
        expect(publish.includes(durable)).toBe(catalogue[name].consumers.includes(service));
      }
      expect(publish).not.toContain('>');
    }
  });
});
