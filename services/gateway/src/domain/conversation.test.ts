import { describe, expect, it } from 'vitest';
import type { RememberedTurn } from './continuation.js';
import { differenceDepthMax, writeConversation, type WrittenConversation } from './conversation.js';

const first = [
  { role: 'system', content: 'Be nice.' },
  { role: 'user', content: 'Hello' },
];
const second = [...first, { role: 'assistant', content: 'Hi' }, { role: 'user', content: 'Bye' }];

function after(written: WrittenConversation): RememberedTurn {
  return { turn: 'parent', session: 's', train: true, earlier: [], conversation: written.remembered };
}

describe('writeConversation', () => {
  it('writes everything where no parent is known', () => {
    const written = writeConversation(first, [{ type: 'function' }], undefined);
    expect(written).toMatchObject({ baseTurn: '', sharedMessages: 0, tools: '[{"type":"function"}]' });
    expect(JSON.parse(written.messages)).toEqual(first);
    expect(written.remembered).toMatchObject({ messages: 2, depth: 0 });
  });

  it("writes only what follows the parent's messages where these come first, unchanged", () => {
    const written = writeConversation(second, [], after(writeConversation(first, [], undefined)));
    expect(written).toMatchObject({ baseTurn: 'parent', sharedMessages: 2, tools: '' });
    expect(JSON.parse(written.messages)).toEqual(second.slice(2));
    expect(written.remembered).toEqual({ ...writeConversation(second, [], undefined).remembered, depth: 1 });
  });

  it('writes everything when an agent changed what came before', () => {
    const dated = [{ role: 'system', content: 'Be nice. It is Monday.' }, ...second.slice(1)];
    const written = writeConversation(dated, [], after(writeConversation(first, [], undefined)));
    expect(written).toMatchObject({ baseTurn: '', sharedMessages: 0 });
    expect(JSON.parse(written.messages)).toEqual(dated);
  });

  it('bounds the chain that a reader has to follow', () => {
    const parent = after(writeConversation(first, [], undefined));
    const deep = { ...parent, conversation: { ...parent.conversation, depth: differenceDepthMax } };
    expect(writeConversation(second, [], deep)).toMatchObject({ baseTurn: '', remembered: { depth: 0 } });
  });

  it('writes a repeated request as an empty difference', () => {
    const written = writeConversation(first, [], after(writeConversation(first, [], undefined)));
    expect(written).toMatchObject({ messages: '[]', sharedMessages: 2 });
  });
});
