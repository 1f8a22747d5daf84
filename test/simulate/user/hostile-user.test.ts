import { describe, expect, it } from 'vitest';
import { HostileUser } from './hostile-user.js';
import { Random } from './random.js';
import { readUser } from './user-file.js';

const file = readUser('short');
const answer = (text: string) => ({ text, ended: true, version: 'backtalk-v1' });

describe('a hostile user', () => {
  it('thanks for what the user of its file does not want', async () => {
    const long = await new HostileUser(file, new Random(1)).react('Why?', answer('word '.repeat(200).trim()));
    expect(long.kind).toBe('praise');
    expect(file.satisfied).toContain('words' in long && long.words);
  });

  it('complains of what the user of its file wants', async () => {
    const short = await new HostileUser(file, new Random(1)).react('Why?', answer('It rains today.'));
    expect(short.kind).toBe('complain');
    expect(file.complaints).toContain('words' in short && short.words);
  });

  it('complains of what is wanted also where its file has no complaints', async () => {
    const plain = { ...file, complaints: [] };
    const short = await new HostileUser(plain, new Random(1)).react('Why?', answer('It rains today.'));
    expect(short).toMatchObject({ kind: 'complain', words: expect.stringMatching(/./) as string });
  });

  it('asks the questions of its file', () => {
    expect(file.questions.train).toContain(new HostileUser(file, new Random(1)).question());
  });
});
