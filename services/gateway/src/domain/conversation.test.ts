import { describe, expect, it } from 'vitest';
import type { RememberedTurn } from './continuation.js';
import { conversationFact, differenceDepthMax, writeConversation, type WrittenConversation } from './conversation.js';
import { writeMessages } from './written-messages.js';

const first = [
  { role: 'system', content: 'Be nice.' },
  { role: 'user', content: 'Hello' },
];
const second = [...first, { role: 'assistant', content: 'Hi' }, { role: 'user', content: 'Bye' }];

let pauses = 0;
const none = new Uint8Array();
const text = (bytes: Uint8Array) => Buffer.from(bytes).toString();
const write = (
  messages: readonly unknown[],
  parent: RememberedTurn | undefined,
  tools = none,
  templateArguments = none,
) =>
  writeConversation({ messages: writeMessages(messages), tools, templateArguments }, parent, () =>
    Promise.resolve((pauses += 1)),
  );

function after(written: WrittenConversation): RememberedTurn {
  const known = { session: 's', policy: 'backtalk', train: true, earlier: [], question: '' };
  return { turn: 'parent', ...known, conversation: written.remembered };
}

describe('writeConversation', () => {
  it('writes everything where no parent is known', async () => {
    const written = await write(first, undefined, Buffer.from('[{"type":"function"}]'));
    expect(written).toMatchObject({ baseTurn: '', sharedMessages: 0 });
    expect(text(written.tools)).toBe('[{"type":"function"}]');
    expect(JSON.parse(text(written.messages))).toEqual(first);
    expect(written.remembered).toMatchObject({ messages: 2, depth: 0 });
  });

  it('writes what the template is given besides, and nothing where it is given nothing', async () => {
    const written = await write(first, undefined, none, Buffer.from('{"enable_thinking":false}'));
    const fact = conversationFact(written, { messages: written.messages, tools: written.tools, deflated: false });
    expect(Buffer.from(fact.templateArguments).toString()).toBe('{"enable_thinking":false}');
    expect((await write(first, undefined)).templateArguments).toHaveLength(0);
  });

  it("writes only what follows the parent's messages where these come first, unchanged", async () => {
    const written = await write(second, after(await write(first, undefined)));
    expect(written).toMatchObject({ baseTurn: 'parent', sharedMessages: 2 });
    expect(written.tools).toHaveLength(0);
    expect(JSON.parse(text(written.messages))).toEqual(second.slice(2));
    expect(written.remembered).toEqual({ ...(await write(second, undefined)).remembered, depth: 1 });
  });

  it('writes everything when an agent changed what came before', async () => {
    const dated = [{ role: 'system', content: 'Be nice. It is Monday.' }, ...second.slice(1)];
    const written = await write(dated, after(await write(first, undefined)));
    expect(written).toMatchObject({ baseTurn: '', sharedMessages: 0 });
    expect(JSON.parse(text(written.messages))).toEqual(dated);
  });

  it('bounds the chain that a reader has to follow', async () => {
    const parent = after(await write(first, undefined));
    const deep = { ...parent, conversation: { ...parent.conversation, depth: differenceDepthMax } };
    expect(await write(second, deep)).toMatchObject({ baseTurn: '', remembered: { depth: 0 } });
  });

  it('says how much a request has that its parent had not, also where it is written whole', async () => {
    const parent = after(await write(first, undefined));
    const deep = { ...parent, conversation: { ...parent.conversation, depth: differenceDepthMax } };
    const bytesOf = (messages: readonly unknown[]) => JSON.stringify(messages).length - 1;
    expect((await write(second, parent)).newBytes).toBe(bytesOf(second.slice(2)));
    expect((await write(second, deep)).newBytes).toBe(bytesOf(second.slice(2)));
    const changed = [{ role: 'system', content: 'Be nasty' }, ...second.slice(1)];
    for (const unknown of [parent, undefined])
      expect((await write(changed, unknown)).newBytes).toBe(JSON.stringify(changed).length);
  });

  it('writes a repeated request as an empty difference', async () => {
    const written = await write(first, after(await write(first, undefined)));
    expect(written.sharedMessages).toBe(2);
    expect(text(written.messages)).toBe('[]');
  });

  it('lets others go on while it looks through what is large, and finds that again as what is shared', async () => {
    const large = [{ role: 'user', content: 'é'.repeat(2_000_000) }, ...Array.from({ length: 2_000 }, () => first[1])];
    const whole = await write(large, undefined);
    expect(JSON.parse(text(whole.messages))).toEqual(large);
    const longer = await write([...large, second[2]], after(whole));
    expect(pauses).toBeGreaterThan(6);
    expect(longer.sharedMessages).toBe(large.length);
    expect(JSON.parse(text(longer.messages))).toEqual([second[2]]);
  });
});
