import { describe, expect, it } from 'vitest';
import { readWholeNumbers } from './whole-numbers.js';

const known = { numbers: { minutes: 20, clients: 4 }, switches: ['keep'] };

describe('whole numbers and switches', () => {
  it('numbers are taken from the command line, and else as they are', () => {
    const { numbers, switches } = readWholeNumbers(['--minutes', '3', '--keep'], known);
    expect(numbers).toEqual({ minutes: 3, clients: 4 });
    expect([...switches]).toEqual(['keep']);
  });

  it.each([
    [['--minutes', 'x'], "--minutes takes a whole number above 0, and not 'x'. See --help."],
    [['--minutes', '0'], "--minutes takes a whole number above 0, and not '0'. See --help."],
    [['--minutes', '1.5'], "--minutes takes a whole number above 0, and not '1.5'. See --help."],
    [['--bogus'], "Unknown option '--bogus'. See --help."],
  ])('a number is refused in one line: %j', (argv, line) => {
    expect(() => readWholeNumbers(argv, known)).toThrow(line);
  });
});
