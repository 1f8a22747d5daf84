import { describe, expect, it } from 'vitest';
import { followUp } from './follow-up.js';
import { ownWords } from './own-words.js';
import { repeatedRequest } from './repeated-request.js';
import { wordingEvidence } from './wording.js';

const verdict = (text: string) => wordingEvidence(text)?.verdict;

describe('evidence in a person\u2019s words', () => {
  it('knows a correction by its phrase, also within thanks', () => {
    expect(verdict('No, I meant the other one.')).toBe(-1);
    expect(verdict('Thanks, but that is way too long.')).toBe(-1);
    expect(verdict('It doesn\u2019t work on my machine')).toBe(-1);
  });

  it('knows thanks, a next question and a pause', () => {
    expect(verdict('Perfect, thank you!')).toBe(1);
    expect(verdict('What about winter?')).toBe(1);
    expect(verdict('Hold on, the phone')).toBe(0);
    expect(verdict('...')).toBe(0);
  });

  it('is silent in doubt', () => {
    expect(verdict('The train leaves at nine.')).toBeUndefined();
    expect(verdict('Thanks but hmm')).toBeUndefined();
    expect(verdict('no problem')).toBeUndefined();
  });

  it('does not read what is pasted', () => {
    expect(ownWords('Read this: "that is wrong, do it again, useless"\n> no!\n```\nwrong\n```')).toBe('Read this:');
    expect(verdict('Thanks! Now: "No, that is wrong. Redo everything, it is useless."')).toBe(1);
  });
});

describe('a request that comes again', () => {
  it('is a correction', () => {
    const question = 'What is the tallest mountain in Europe?';
    expect(repeatedRequest(question, 'The tallest mountain in Europe, please?')?.verdict).toBe(-1);
    expect(repeatedRequest(question, 'And the tallest in Asia?')).toBeUndefined();
    expect(repeatedRequest('Hi there', 'Hi there')).toBeUndefined();
  });
});

describe('a plain question that refers back', () => {
  const verdict = (text: string) => followUp('How tall is the tower?', 'It is 300 metres tall.', text)?.verdict;

  it('is a sign of content', () => {
    expect(verdict('And when was it built?')).toBe(1);
    expect(verdict('Which tower is the next in height?')).toBe(1);
  });

  it('is none in doubt, to the assistant itself, about something else, or among other words', () => {
    expect(verdict("Isn't it 330?")).toBeUndefined();
    expect(verdict('Are you sure about that?')).toBeUndefined();
    expect(verdict('What day is today?')).toBeUndefined();
    expect(verdict('It leans. Why is that?')).toBe(undefined);
    expect(verdict('Is it tall? Is it wide?')).toBeUndefined();
  });
});
