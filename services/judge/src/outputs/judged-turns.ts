// Reads what a judgement is about back from the log, by ids. It keeps nothing.
import { TurnLog, type FactReader, type TurnIds } from '@backtalk/kit';
import { Provenance, type TurnCompleted, type TurnContinued, type TurnOpened } from '@backtalk/proto/facts';
import type { Material } from '../domain/material.js';
import type { Role } from '../domain/next-state.js';
import { readMaterial } from '../domain/read-material.js';
import { judgeErrors } from '../errors.js';

const provenanceOf: Readonly<Record<Role, Provenance>> = {
  user: Provenance.PROVENANCE_USER,
  tool: Provenance.PROVENANCE_TOOL,
  environment: Provenance.PROVENANCE_ENVIRONMENT,
};

export class JudgedTurns {
  private readonly log: TurnLog;

  constructor(reader: FactReader) {
    this.log = new TurnLog(reader);
  }

  async opened(ids: TurnIds): Promise<TurnOpened> {
    return found((await this.log.opened(ids))?.message, 'request');
  }

  async completed(ids: TurnIds): Promise<TurnCompleted> {
    return found((await this.log.completed(ids))?.message, 'answer');
  }

  async continued(ids: TurnIds): Promise<TurnContinued | undefined> {
    return (await this.log.continued(ids))?.message;
  }

  /** Nothing when nothing was said after the answer. */
  async material(continued: TurnContinued): Promise<Material | undefined> {
    const [opened, completed] = await Promise.all([this.opened(continued), this.completed(continued)]);
    const { messages } = await this.log.conversation(opened, () =>
      judgeErrors.turnUnreadable({ missing: 'conversation' }),
    );
    return readMaterial(messages, completed, continued);
  }

  /** The material of a turn, with what the role that spoke after it said after later turns too. */
  async materialOf(ids: TurnIds, later: readonly string[]): Promise<Material> {
    const { tenant, user } = ids;
    const [continued, ...rest] = await Promise.all(
      [ids.turn, ...later].map((turn) => this.continued({ tenant, user, turn })),
    );
    const material = found(await this.material(found(continued, 'next state')), 'next state');
    const said = rest
      .flatMap((one) => one?.nextState ?? [])
      .filter(({ provenance }) => provenance === provenanceOf[material.next.role]);
    if (said.length === 0) return material;
    const text = [material.next.text, ...said.map((one) => one.text)].join('\n');
    return { ...material, next: { ...material.next, text } };
  }
}

function found<T>(value: T | undefined, missing: string): T {
  if (value === undefined) throw judgeErrors.turnUnreadable({ missing });
  return value;
}
