// Fills the index again from the headers of the log, after Valkey was emptied or started again, or on a first start. Headers suffice for who
// answered what and what continues what; texts are read from the log when a tie needs them. Requests that contain an answer
// and continue nothing yet are linked again: what they waited for was forgotten with the index. Repeating it changes nothing.

import type { Clock, FactHeadersRow, FactReader } from '@backtalk/kit';
import type { Events } from '../events.js';
import type { Owner, TurnIndex } from './turn-index.js';

const facts = ['turnOpened', 'turnCompleted', 'turnContinued', 'sessionClosed'] as const;

type HeaderRecord = FactHeadersRow<(typeof facts)[number]>;

/** Links one opened turn of the log again. */
export type Relink = (owner: Owner, turn: string) => Promise<void>;

export class Rebuilder {
  private running: Promise<void> | undefined;

  constructor(
    private readonly index: TurnIndex,
    private readonly reader: FactReader,
    private readonly events: Events,
    private readonly clock: Clock,
    private readonly relink: Relink,
  ) {}

  /** Resolves when the index holds what the log says; costs one look-up while it does. */
  async ensureReady(): Promise<void> {
    if (await this.index.isReady()) return;
    this.running ??= this.rebuild().finally(() => {
      this.running = undefined;
    });
    await this.running;
  }

  private async rebuild(): Promise<void> {
    const startedAt = this.clock.now();
    const life = await this.index.currentLife();
    // No more than what lies unlinked in the log: most are taken out again by their continuation, a few facts later.
    const unlinked = new Map<string, Owner>();
    let count = 0;
    for await (const record of this.reader.headers(facts)) {
      await this.take(record, unlinked);
      count += 1;
    }
    for (const [turn, owner] of unlinked) await this.relink(owner, turn);
    await this.index.markReady(life);
    this.events.rebuilt(count, this.clock.now() - startedAt);
  }

  private async take(record: HeaderRecord, unlinked: Map<string, Owner>): Promise<void> {
    const { name, headers, sequence } = record;
    const [tenant = '', user = ''] = record.subject.split('.').slice(3, 5);
    const { turn = '', parent = '', session = '', policy = '', continuedBy = '' } = headers;
    const owner = { tenant, user, policy };
    switch (name) {
      case 'turnOpened':
        await this.index.putTurn(turn, { ...owner, session, parent });
        if (headers.answerKey !== undefined) unlinked.set(turn, owner);
        break;
      case 'turnCompleted':
        await this.takeCompleted(turn, owner, record);
        break;
      case 'turnContinued':
        await this.index.putTurn(turn, { ...owner, session, parent, continuedBy });
        await this.index.putTurn(continuedBy, { ...owner, session, parent: turn });
        await this.index.addContinued(session, turn, sequence);
        unlinked.delete(continuedBy);
        break;
      case 'sessionClosed':
        await this.index.markClosed(session);
        break;
    }
  }

  private async takeCompleted(
    turn: string,
    owner: Owner & { readonly policy: string },
    record: HeaderRecord,
  ): Promise<void> {
    const { headers, sequence, timeMs } = record;
    const known = (await this.index.turn(turn))?.session ?? '';
    const session = known === '' ? (headers.session ?? '') : known;
    await this.index.putTurn(turn, { ...owner, session, completedSequence: sequence });
    if (headers.answerKey !== undefined) await this.index.addAnswer(owner, headers.answerKey, turn, sequence);
    if (session === '') return;
    await this.index.addSessionAnswer(session, turn, sequence);
    await this.index.touchSession({ session, ...owner, lastMs: timeMs });
  }
}
