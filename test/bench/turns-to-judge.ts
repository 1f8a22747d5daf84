// Turns that wait for nothing but the judge: asked, answered and continued, written into the log as the gateway and the
// collector write them, so that no answer has to be generated while the judge is measured.
import { FactPublisher, newId, newTurnId, type Broker } from '@backtalk/kit';
import { Conversation_Encoding, Provenance, TurnCompleted, TurnContinued, TurnOpened } from '@backtalk/proto/facts';
import type { Random } from '../loop/random.js';
import { corrections, praises, question } from '../loop/small-talk.js';

const policy = 'backtalk';
const person = { tenant: 'benchtenant', user: 'benchuser', policy } as const;
const answer =
  'There are many things to consider here. First, it is important to understand the history of the place and the people ' +
  'who live there. Second, you should think about the season, since the weather changes what is possible on any day.';

/** Gives the new turns' ids. The last fact of each, which wakes the judge, comes when all others are stored. */
export async function publishTurns(broker: Broker, random: Random, count: number): Promise<string[]> {
  const publisher = new FactPublisher(broker);
  const turns = Array.from({ length: count }, () => ({ turn: newTurnId(), session: `session_${newId()}` }));
  for (const [at, { turn, session }] of turns.entries()) {
    await publisher.publish('turnOpened', opened(turn, session, question(random, at)));
    await publisher.publish('turnCompleted', completed(turn, session));
  }
  for (const { turn, session } of turns) await publisher.publish('turnContinued', continued(turn, session, random));
  return turns.map(({ turn }) => turn);
}

function opened(turn: string, session: string, content: string): TurnOpened {
  const messages = Buffer.from(JSON.stringify([{ role: 'user', content }]));
  return TurnOpened.fromPartial({
    ...person,
    turn,
    provisionalSession: session,
    conversation: { encoding: Conversation_Encoding.ENCODING_JSON, messages },
    consent: { train: true, source: 'default' },
  });
}

function completed(turn: string, session: string): TurnCompleted {
  return TurnCompleted.fromPartial({
    ...person,
    turn,
    provisionalSession: session,
    text: answer,
    finishReason: 'length',
    trainable: true,
    weightsVersion: `${policy}-v0`,
    weightsVersionAtEnd: `${policy}-v0`,
    answerKey: turn,
  });
}

function continued(turn: string, session: string, random: Random): TurnContinued {
  const text = random.next() < 0.5 ? random.pick(corrections) : random.pick(praises);
  return TurnContinued.fromPartial({
    ...person,
    turn,
    session,
    continuedBy: newTurnId(),
    main: true,
    nextState: [{ provenance: Provenance.PROVENANCE_USER, text }],
    consent: { train: true, source: 'default' },
  });
}
