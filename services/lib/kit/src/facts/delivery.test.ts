import { expect, it } from 'vitest';
import { brokerErrors } from '../broker/errors.js';
import { subjectErrors } from '../topology/subjects.js';
import { verdictOn } from './delivery.js';
import { factErrors } from './errors.js';

it('what becomes of a failed fact follows from the error', () => {
  const invalid = subjectErrors.factInvalid({ fact: 'f', field: 'x' });
  expect(verdictOn(invalid, 1, 8)).toEqual({ kind: 'dead' });
  expect(verdictOn(factErrors.factsStopped(), 7, 8)).toEqual({ kind: 'retry' });
  expect(verdictOn(factErrors.factsStopped(), 8, 8)).toEqual({ kind: 'dead' });
  expect(verdictOn(brokerErrors.brokerUnavailable({ doing: 'x' }), 100, 8)).toEqual({ kind: 'wait' });
  expect(verdictOn(brokerErrors.streamMissing({ stream: 'S' }), 1, 8)).toEqual({ kind: 'fatal' });
});
