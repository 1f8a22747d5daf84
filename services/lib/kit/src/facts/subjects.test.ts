import { TurnJudged, TurnOpened } from '@backtalk/proto/facts';
import { describe, expect, it } from 'vitest';
import { brokerErrors, brokerServices } from '../broker/index.js';
import { catalogue, factNames, mayRead } from './catalogue.js';
import { verdictOn } from './delivery.js';
import { factErrors } from './errors.js';
import { permissionsOf } from './permissions.js';
import { durableOf, factNameOf, subjectFilter, subjectOf } from './subjects.js';

describe('subjects', () => {
  it('stand in the order of the catalogue, and say which fact it is', () => {
    const judged = TurnJudged.fromPartial({ tenant: 'a', user: 'b', policy: 'p', turn: 't', revision: 2 });
    expect(subjectOf('turnJudged', judged)).toBe('backtalk.turn.judged.a.b.p.t.2');
    expect(factNameOf('backtalk.turn.judged.a.b.p.t.2')).toBe('turnJudged');
    expect(subjectFilter('turnJudged', { policy: 'p' })).toBe('backtalk.turn.judged.*.*.p.*.*');
    expect(subjectFilter('turnOpened')).toBe('backtalk.turn.opened.>');
    expect(() => factNameOf('other.turn.opened')).toThrow();
    expect(() => subjectOf('turnOpened', TurnOpened.fromPartial({ turn: 'a.>' }))).toThrow();
  });

  it('are unlike each other, so that a subject names one fact', () => {
    expect(new Set(factNames.map((name) => catalogue[name].subject)).size).toBe(factNames.length);
  });
});

describe('permissions', () => {
  it('let a service publish the facts that it owns and none besides', () => {
    for (const service of brokerServices) {
      const { publish } = permissionsOf(service, []);
      for (const name of factNames) {
        expect(publish.includes(subjectFilter(name))).toBe(catalogue[name].by.includes(service));
        const durable = `$JS.ACK.${catalogue[name].stream}.${durableOf(service, name)}.>`;
        expect(publish.includes(durable)).toBe(mayRead(service, name));
      }
      expect(publish).not.toContain('>');
    }
  });
});

describe('what becomes of a failed fact', () => {
  it('follows from the error', () => {
    const invalid = factErrors.factInvalid({ fact: 'f', field: 'x' });
    expect(verdictOn(invalid, 1, 8)).toEqual({ kind: 'dead', reason: 'fact_invalid' });
    expect(verdictOn(factErrors.factsStopped(), 7, 8)).toEqual({ kind: 'retry' });
    expect(verdictOn(factErrors.factsStopped(), 8, 8)).toEqual({ kind: 'dead', reason: 'facts_stopped' });
    expect(verdictOn(brokerErrors.brokerUnavailable({ doing: 'x' }), 100, 8)).toEqual({ kind: 'wait' });
    expect(verdictOn(brokerErrors.streamMissing({ stream: 'S' }), 1, 8)).toEqual({ kind: 'fatal' });
  });
});
