import { PassThrough } from 'node:stream';
import { expect, it } from 'vitest';
import { createOutput } from './output.js';

function printed(json: boolean, print: (output: ReturnType<typeof createOutput>) => void): string {
  const out = new PassThrough().setEncoding('utf8');
  print(createOutput(json, out as unknown as NodeJS.WriteStream));
  return String(out.read());
}

it('words of users and models change nothing of a person’s terminal, and break no row of a table', () => {
  const said = 'Be \u202ebrief.\u001b[2J\u001b]0;owned\u0007\r\nOr\telse\u009b1m\u2069';
  const text = printed(false, ({ line, table }) => {
    line(said);
    table(
      ['lesson', 'words'],
      [
        ['one', said],
        ['two', 'Fine.'],
      ],
    );
  });
  expect(text).toBe(
    [
      'Be brief.[2J]0;owned',
      'Or\telse1m',
      'lesson  words',
      'one     Be brief.[2J]0;owned Or else1m',
      'two     Fine.',
      '',
    ].join('\n'),
  );
});

it('programs are given words as they were said', () => {
  const said = 'Be brief.\u001b[2J';
  expect(printed(true, ({ value }) => value({ said }))).toBe(`${JSON.stringify({ said })}\n`);
});
