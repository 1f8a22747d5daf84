// Reads turns back from the log. In: ids. Out: what a judgement is about. It finds every fact by its subject, and
// keeps nothing.
import { decodeConversation, type FactReader } from '@backtalk/kit';
import type { Conversation, TurnCompleted, TurnContinued, TurnOpened } from '@backtalk/proto/facts';
import type { Material } from '../domain/material.js';
import { readMaterial } from '../domain/read-material.js';
import { judgeErrors } from '../errors.js';

export interface TurnIds {
  readonly tenant: string;
  readonly user: string;
  readonly turn: string;
}

export class TurnLog {
  constructor(private readonly reader: FactReader) {}

  /** Nothing when nobody said anything after the answer. */
  async material(continued: TurnContinued): Promise<Material | undefined> {
    const [opened, completed] = await Promise.all([this.opened(continued), this.completed(continued)]);
    const { conversation } = opened;
    if (conversation === undefined) throw judgeErrors.turnUnreadable({ missing: 'conversation' });
    const { messages } = await decodeConversation(conversation, (turn) => this.conversation({ ...continued, turn }));
    return readMaterial(messages, completed, continued);
  }

  async opened({ tenant, user, turn }: TurnIds): Promise<TurnOpened> {
    const found = await this.reader.last('turnOpened', { tenant, user, turn });
    if (found === undefined) throw judgeErrors.turnUnreadable({ missing: 'request' });
    return found.message;
  }

  async completed({ tenant, user, turn }: TurnIds): Promise<TurnCompleted> {
    const found = await this.reader.last('turnCompleted', { tenant, user, turn });
    if (found === undefined) throw judgeErrors.turnUnreadable({ missing: 'answer' });
    return found.message;
  }

  async continued({ tenant, user, turn }: TurnIds): Promise<TurnContinued | undefined> {
    return (await this.reader.last('turnContinued', { tenant, user, turn }))?.message;
  }

  async isErased({ tenant, user }: Omit<TurnIds, 'turn'>): Promise<boolean> {
    return (await this.reader.last('personErased', { tenant, user })) !== undefined;
  }

  private async conversation(ids: TurnIds): Promise<Conversation> {
    const { conversation } = await this.opened(ids);
    if (conversation === undefined) throw judgeErrors.turnUnreadable({ missing: 'conversation' });
    return conversation;
  }
}
