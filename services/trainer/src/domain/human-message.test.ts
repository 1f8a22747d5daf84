import { Provenance, TurnContinued } from '@backtalk/proto/facts';
import { describe, expect, it } from 'vitest';

import { humanMessage } from './human-message.js';

const user = (content: string) => ({ role: 'user', content });

function after(...provenances: readonly Provenance[]): TurnContinued {
  return TurnContinued.fromPartial({ nextState: provenances.map((provenance) => ({ provenance })) });
}

describe('the last human message', () => {
  it('is the last user message when nothing else is known', () => {
    expect(humanMessage([user('Hello')], undefined)).toBe(-1);
  });

  it('is not the context that a client adds after it', () => {
    const messages = [user('Hello'), { role: 'assistant' }, user('Shorter!'), user('<context/>')];
    expect(humanMessage(messages, after(Provenance.PROVENANCE_USER, Provenance.PROVENANCE_CLIENT))).toBe(2);
  });

  it('is an earlier one when only tools spoke since', () => {
    const messages = [user('Hello'), { role: 'assistant' }, { role: 'tool' }];
    expect(humanMessage(messages, after(Provenance.PROVENANCE_TOOL))).toBe(-1);
  });
});
