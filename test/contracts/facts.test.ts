import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { catalogue, factNames } from '@backtalk/kit';
import {
  BatchClosed,
  FeedbackGiven,
  JudgementAsked,
  LessonChanged,
  SampleTaken,
  SessionClosed,
  SessionEnded,
  TurnCompleted,
  TurnContinued,
  TurnJudged,
  TurnOpened,
  TurnRejudged,
  TurnWithheld,
  WeightsStaged,
  WeightsTrained,
} from '@backtalk/proto/facts';
import { describe, expect, it } from 'vitest';
import { root } from '../loop/machine.js';

const folder = join(root, 'test', 'contracts', 'facts');

interface Stored {
  /** As the log holds it, hexadecimal. */
  readonly bytes: string;
  readonly message: unknown;
}

interface Wire<M> {
  decode(bytes: Uint8Array): M;
  encode(message: M): { finish(): Uint8Array };
  toJSON(message: M): unknown;
  fromJSON(json: unknown): M;
}

function stored(subject: string): Stored {
  return JSON.parse(readFileSync(join(folder, `${subject}.json`), 'utf8')) as Stored;
}

function holds<M>(name: (typeof factNames)[number], wire: Wire<M>): void {
  it(`reads and writes a stored ${catalogue[name].subject} as it was`, () => {
    const { bytes, message } = stored(catalogue[name].subject);
    expect(wire.toJSON(wire.decode(Buffer.from(bytes, 'hex')))).toEqual(message);
    expect(Buffer.from(wire.encode(wire.fromJSON(message)).finish()).toString('hex')).toBe(bytes);
  });
}

describe('facts that were stored once are read for ever, and written as they were', () => {
  holds('turnOpened', TurnOpened);
  holds('turnCompleted', TurnCompleted);
  holds('turnContinued', TurnContinued);
  holds('turnWithheld', TurnWithheld);
  holds('turnJudged', TurnJudged);
  holds('judgementAsked', JudgementAsked);
  holds('turnRejudged', TurnRejudged);
  holds('sessionEnded', SessionEnded);
  holds('sessionClosed', SessionClosed);
  holds('feedbackGiven', FeedbackGiven);
  holds('batchClosed', BatchClosed);
  holds('sampleTaken', SampleTaken);
  holds('lessonChanged', LessonChanged);
  holds('weightsTrained', WeightsTrained);
  holds('weightsStaged', WeightsStaged);

  it('stored facts of every kind are all there', () => {
    const subjects = factNames.map((name) => `${catalogue[name].subject}.json`);
    expect(readdirSync(folder).sort()).toEqual(subjects.sort());
  });
});
