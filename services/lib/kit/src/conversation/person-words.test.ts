import { describe, expect, it } from 'vitest';
import { growth, hostileTexts } from '../testing/index.js';
import { isObservation, lastHumanMessage, personWords, templateTokenIn } from './person-words.js';

const openclawContext = (active: string) =>
  `<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>\nConversation data (data, not instructions):\nActive exec sessions:\n${active}\n<<<END_OPENCLAW_INTERNAL_CONTEXT>>>`;

describe('the words of a person in a text that a client sent', () => {
  it.each([
    ['[Sun 2026-11-22 11:28 UTC] Was that all?', 'Was that all?'],
    ['[Sun 2026-11-22 11:28 UTC] Was that all?\n\nRuntime: agent=main | host=box | model=x', 'Was that all?'],
    ['[Telegram Ann (@ann) id:12 2026-01-02 12:00 UTC] hello\n[message_id: 12]', 'hello'],
    [`Bitte auf Deutsch.\n\n${openclawContext('error: failed, pid 7')}`, 'Bitte auf Deutsch.'],
    [
      'Conversation info (untrusted metadata):\n```json\n{"sender": "Ann"}\n```\n\nSender (untrusted metadata):\n```json\n{}\n```\n\n[Wed 2026-02-18 18:04 GMT+1] hello',
      'hello',
    ],
    ['Too dense.\n<system-reminder>The list is empty.</system-reminder>', 'Too dense.'],
    ['<timestamp>Tuesday</timestamp>\n<user_query>\nWhy is it red?\n</user_query>', 'Why is it red?'],
    ['<task>\nAdd a test\n</task>\n<environment_details>\n# Mode\n</environment_details>', 'Add a test'],
    ['<editorContext>\na.ts\n</editorContext>\n<userRequest>\nrename it\n</userRequest>', 'rename it'],
    ['--- BEGIN MEMORY ---\nlikes tea\n--- END MEMORY ---\nGood morning', 'Good morning'],
    ['[CONTEXT]\nnoon\n[/CONTEXT]\nWhat now?', 'What now?'],
    ['<open_files>a.ts</open_files><git_status>clean</git_status>\nFix it', 'Fix it'],
    [
      '<command-name>/review</command-name>\n<command-message>review</command-message>\n<command-args>only the tests</command-args>',
      'only the tests',
    ],
    [
      'The user sent a new message while you were working:\nStop it.\n\nThis is how Claude Code surfaces messages the user sends mid-turn.',
      'Stop it.',
    ],
  ])('finds them in %j', (text, words) => {
    expect(personWords(text)).toBe(words);
    expect(personWords(words)).toBe(words);
  });

  it.each([
    'Was that all? [sic] At 11:28 it was not.',
    'Why does <b>this</b> fail?\n<div>\n</div>',
    'What does <system-reminder> mean?',
    'Note: x=5 is wrong.',
    'Why does it say "The user sent a new message while you were working"?',
    '[2026-11-22 11:28:01] started\n[2026-11-22 11:28:02] stopped',
    '[ERROR 2026-11-22 11:28] connection lost',
    'Look: <user_query>do this</user_query> is what it sent.',
    'See [a] and [b].',
  ])('leaves %j as it is', (text) => {
    expect(personWords(text)).toBe(text);
  });

  it.each([
    openclawContext('none'),
    openclawContext('pid 12: error, no, wrong'),
    '<system-reminder>be brief</system-reminder>',
    '<environment_context>\n<cwd>/tmp</cwd>\n</environment_context>',
    '# AGENTS.md instructions for /tmp\n\n<INSTRUCTIONS>\nuse tabs\n</INSTRUCTIONS>',
    '[Request interrupted by user]',
    '[Internal task completion event]\nsource: subagent',
    'Runtime: agent=main | host=box',
    '<local-command-stdout>ok</local-command-stdout>',
    'Read HEARTBEAT.md if it exists',
    '<command-name>/compact</command-name>\n            <command-message>compact</command-message>\n            <command-args></command-args>',
    'Another language model started to solve this problem and produced a summary of its thinking process. Use it.',
    'This session is being continued from a previous conversation that ran out of context. It is summarized below.',
  ])('finds none in %j', (text) => {
    expect(personWords(text)).toBe('');
  });

  it('reads any text in time that grows with its length', () => {
    for (const [piece, make] of hostileTexts) {
      expect(growth(personWords, make), JSON.stringify(piece)).toBeLessThan(4);
      expect(growth(templateTokenIn, make), JSON.stringify(piece)).toBeLessThan(4);
    }
    for (const piece of ['<<<BEGIN_X>>>', '--- BEGIN X', '<a-b>', '[Sun 11:28 ', 'A (untrusted):\n'])
      expect(
        growth(personWords, (characters) => piece.repeat(characters / piece.length)),
        piece,
      ).toBeLessThan(4);
  });
});

describe('what is read of long texts', () => {
  it('reads head and tail of a text that is longer than a person writes', () => {
    const words = personWords(`Why?${'x'.repeat(1_000_000)}Be brief.`);
    expect(words).toMatch(/^Why\?.*Be brief\.$/s);
    expect(words.length).toBeLessThanOrEqual(32_768);
  });

  it('looks for the last words of a person in a megabyte of messages and no further', () => {
    const user = (content: string) => ({ role: 'user', content });
    const context = user(`<system-reminder>${'x'.repeat(100_000)}</system-reminder>`);
    const behind = (count: number) => [user('Why?'), ...Array.from({ length: count }, () => context)];
    expect(lastHumanMessage(behind(9))).toBe(0);
    expect(lastHumanMessage(behind(12))).toBe(-1);
  });
});

describe('the last human message', () => {
  const user = (content: unknown) => ({ role: 'user', content });

  it('stands before the messages that a client or a tool sent as the user', () => {
    const messages = [
      { role: 'system', content: 'x' },
      user('[Sun 2026-11-22 11:28 UTC] Which one?'),
      { role: 'assistant', content: 'a' },
      user('Observation: 3 files'),
      user([{ type: 'text', text: openclawContext('none') }]),
    ];
    expect(lastHumanMessage(messages)).toBe(1);
    expect(lastHumanMessage([user(openclawContext('none')), null, 7])).toBe(-1);
  });

  it('a human message may hold context in a part of its own', () => {
    const parts = [
      { type: 'text', text: '<system-reminder>x</system-reminder>' },
      { type: 'text', text: 'go on' },
    ];
    expect(lastHumanMessage([user('first'), user(parts)])).toBe(1);
  });

  it('an observation is the result of a tool in the role of a user', () => {
    for (const text of ['Observation: 1', '[read_file for "a.txt"] Result:\n1', 'Tool output: 1'])
      expect(isObservation(text)).toBe(true);
    expect(isObservation('The observation: it is late.')).toBe(false);
  });
});

describe('a token of a chat template', () => {
  it.each(['a <|im_end|> b', '</s>', '[/INST]', '<start_of_turn>user', '<\uFF5CUser\uFF5C>', '<<SYS>>'])(
    'a token of a template is found in %j',
    (text) => {
      expect(templateTokenIn(text)).toBeDefined();
    },
  );

  it('no token of a template is seen in what only looks like one', () => {
    for (const text of ['a < b | c > d', '<div>', '[INSTALL]', 'x <| y']) expect(templateTokenIn(text)).toBeUndefined();
  });
});
