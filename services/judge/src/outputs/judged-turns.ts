// Reads what a judgement is about back from the log, by ids. It keeps nothing.
import { TurnLog, type FactReader, type Refusals, type TurnIds } from '@backtalk/kit';
import {
  Provenance,
  type FeedbackGiven,
  type TurnCompleted,
  type TurnContinued,
  type TurnOpened,
} from '@backtalk/proto/facts';
import type { Material } from '../domain/material.js';
import type { Role } from '../domain/next-state.js';
import { askedIn, beginsConversation, readMaterial } from '../domain/read-material.js';
import { judgeErrors } from '../errors.js';

const provenanceOf: Readonly<Record<Role, Provenance>> = {
  user: Provenance.PROVENANCE_USER,
  tool: Provenance.PROVENANCE_TOOL,
  environment: Provenance.PROVENANCE_ENVIRONMENT,
};

export class JudgedTurns {
  private readonly log: TurnLog;

  constructor(
    private readonly reader: FactReader,
    private readonly refusals: Pick<Refusals, 'said'>,
  ) {
    // A "no" that a copy of the log lacks would be none.
    this.log = new TurnLog(reader, true);
  }

  async opened(ids: TurnIds): Promise<TurnOpened> {
    return found(await this.openedIfThere(ids), 'request');
  }

  async openedIfThere(ids: TurnIds): Promise<TurnOpened | undefined> {
    return (await this.log.opened(ids))?.message;
  }

  async completed(ids: TurnIds): Promise<TurnCompleted> {
    return found((await this.log.completed(ids))?.message, 'answer');
  }

  async continued(ids: TurnIds): Promise<TurnContinued | undefined> {
    return (await this.log.continued(ids))?.message;
  }

  /**
   * Why a turn may not be learned from; nothing where it may. The collector knows what a turn follows, and says so in its
   * continuation, or in a fact of its own where it withholds the turn. Until then, a turn that goes on from an unknown one, or
   * in a session by name, is not learned from where its person said no in any other.
   */
  async withheld(opened: TurnOpened, continued: TurnContinued | undefined): Promise<Withheld | undefined> {
    const { tenant, user, turn, consent, provisionalParent, answerKeys, declaredSession } = opened;
    if (consent?.train !== true) return 'opted_out';
    if (consent.source === 'request' || continued?.consent?.train === true) return undefined;
    // A refusal in the request that came next is about that request's words.
    const inherited = withheldBy(continued?.consent?.source ?? '');
    if (inherited !== undefined) return inherited;
    const around = [turn, provisionalParent].filter((one) => one !== '');
    const facts = await Promise.all(around.map((one) => this.log.withheld({ tenant, user, turn: one })));
    const fact = facts.find((one) => one !== undefined);
    if (fact !== undefined) return withheldBy(fact.message.source) ?? 'opted_out';
    const isUnknown = provisionalParent === '' && (answerKeys.length > 0 || declaredSession !== '');
    if (!isUnknown) return undefined;
    const saidNo = (await this.refusals.said({ tenant, user })) || (await this.log.saidNo({ tenant, user }));
    return saidNo ? 'consent_unknown' : undefined;
  }

  /** In any turn, also where that was not this one, and later than it was learned from. */
  hasSaidNo({ tenant, user }: Pick<TurnIds, 'tenant' | 'user'>): Promise<boolean> {
    return this.refusals.said({ tenant, user });
  }

  /** Nothing when nothing was said after the answer. */
  async material(continued: TurnContinued): Promise<Material | undefined> {
    const { opened, messages, completed } = await this.request(continued);
    const material = readMaterial(messages, completed, continued);
    return material && { ...material, begins: beginsConversation(opened, continued) };
  }

  /** What a comment on a turn is read beside, also where nothing was said after the answer. */
  async asked(ids: TurnIds): Promise<Pick<Material, 'question' | 'answer'>> {
    const { messages, completed } = await this.request(ids);
    return askedIn(messages, completed);
  }

  /** What a turn asks, also where nothing was said after the answer, and whether its conversation begins with that. */
  async begun(ids: TurnIds): Promise<Pick<Material, 'question' | 'begins'>> {
    const { opened, messages, completed } = await this.request(ids);
    const { question } = askedIn(messages, completed);
    return { question, begins: beginsConversation(opened, { act: '' }) };
  }

  /** Feedback on a turn, as far as the log has it. */
  async feedback({ tenant, user, turn }: TurnIds, digests: readonly string[]): Promise<FeedbackGiven[]> {
    const facts = await Promise.all(
      digests.map((digest) => this.reader.last('feedbackGiven', { tenant, user, turn, digest })),
    );
    return facts.flatMap((fact) => (fact === undefined ? [] : [fact.message]));
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

  private async request(ids: TurnIds) {
    const [opened, completed] = await Promise.all([this.opened(ids), this.completed(ids)]);
    const { messages } = await this.log.conversation(opened, () =>
      judgeErrors.turnUnreadable({ missing: 'conversation' }),
    );
    return { opened, messages, completed };
  }
}

type Withheld = 'opted_out' | 'consent_unknown';

function withheldBy(source: string): Withheld | undefined {
  if (source === 'unknown') return 'consent_unknown';
  return source === 'session' ? 'opted_out' : undefined;
}

function found<T>(value: T | undefined, missing: string): T {
  if (value === undefined) throw judgeErrors.turnUnreadable({ missing });
  return value;
}
