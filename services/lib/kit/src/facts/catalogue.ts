// The one table of all facts. Subjects, filters, streams, publishers, readers, consumers and the broker's permissions
// derive from it. A row is added here, or nowhere. Facts are read for ever: fields are added, never changed.
import {
  BatchClosed,
  FeedbackGiven,
  PersonErased,
  SessionClosed,
  SessionEnded,
  TurnCompleted,
  TurnContinued,
  TurnJudged,
  TurnOpened,
  WeightsStaged,
  WeightsTrained,
} from '@backtalk/proto/facts';
import type { BrokerService } from '../broker/users.js';

export interface FactMessages {
  turnOpened: TurnOpened;
  turnCompleted: TurnCompleted;
  turnContinued: TurnContinued;
  turnJudged: TurnJudged;
  sessionEnded: SessionEnded;
  sessionClosed: SessionClosed;
  feedbackGiven: FeedbackGiven;
  personErased: PersonErased;
  batchClosed: BatchClosed;
  weightsTrained: WeightsTrained;
  weightsStaged: WeightsStaged;
}

/** The fields of a message that become tokens of its subject. */
interface FactTokens {
  turnOpened: 'tenant' | 'user' | 'turn';
  turnCompleted: 'tenant' | 'user' | 'turn';
  turnContinued: 'tenant' | 'user' | 'turn';
  turnJudged: 'tenant' | 'user' | 'policy' | 'turn' | 'revision';
  sessionEnded: 'tenant' | 'user' | 'session';
  sessionClosed: 'tenant' | 'user' | 'session';
  feedbackGiven: 'tenant' | 'user' | 'turn' | 'digest';
  personErased: 'tenant' | 'user';
  batchClosed: 'policy';
  weightsTrained: 'policy';
  weightsStaged: 'policy';
}

export type FactName = keyof FactMessages;
export type FactMessage<N extends FactName> = FactMessages[N];
/** Some or all of a subject's tokens; those left out match anything. */
export type FactIds<N extends FactName> = Readonly<Partial<Record<FactTokens[N], string | number>>>;
export type FactStream = 'TURNS' | 'WEIGHTS';

/** Writes messages one after another, each from an empty start. */
export type FactWriter = ReturnType<typeof TurnOpened.encode>;

export interface FactCodec<M> {
  encode(message: M, writer?: FactWriter): FactWriter;
  decode(bytes: Uint8Array): M;
}

export interface FactDefinition<N extends FactName> {
  readonly stream: FactStream;
  /** Noun and verb, in the past tense. */
  readonly subject: string;
  /** In the order in which they stand in the subject. */
  readonly tokens: readonly FactTokens[N][];
  readonly codec: FactCodec<FactMessages[N]>;
  /** `once`: one message a subject, ever. `chain`: each message names the one before it. */
  readonly kind: 'once' | 'chain';
  readonly by: readonly BrokerService[];
  /** Who may read and consume it. Those who publish it may, too. */
  readonly readBy: readonly BrokerService[];
  /** Encoded, wherever it is stored. */
  readonly bytesMax: number;
}

const mebibyte = 1024 * 1024;
const turnTokens = ['tenant', 'user', 'turn'] as const;
const sessionTokens = ['tenant', 'user', 'session'] as const;

export const catalogue: { readonly [N in FactName]: FactDefinition<N> } = {
  turnOpened: {
    stream: 'TURNS',
    subject: 'turn.opened',
    tokens: turnTokens,
    codec: TurnOpened,
    kind: 'once',
    by: ['gateway'],
    readBy: ['collector', 'judge', 'trainer', 'publisher', 'cli'],
    bytesMax: 32 * mebibyte,
  },
  turnCompleted: {
    stream: 'TURNS',
    subject: 'turn.completed',
    tokens: turnTokens,
    codec: TurnCompleted,
    kind: 'once',
    by: ['gateway'],
    readBy: ['collector', 'judge', 'trainer', 'publisher', 'cli'],
    bytesMax: 32 * mebibyte,
  },
  turnContinued: {
    stream: 'TURNS',
    subject: 'turn.continued',
    tokens: turnTokens,
    codec: TurnContinued,
    kind: 'once',
    by: ['collector'],
    readBy: ['gateway', 'judge', 'trainer', 'publisher', 'cli'],
    bytesMax: 32 * mebibyte,
  },
  turnJudged: {
    stream: 'TURNS',
    subject: 'turn.judged',
    tokens: ['tenant', 'user', 'policy', 'turn', 'revision'],
    codec: TurnJudged,
    kind: 'once',
    by: ['judge'],
    readBy: ['collector', 'trainer', 'publisher', 'cli'],
    bytesMax: 4 * mebibyte,
  },
  sessionEnded: {
    stream: 'TURNS',
    subject: 'session.ended',
    tokens: sessionTokens,
    codec: SessionEnded,
    kind: 'once',
    by: ['gateway'],
    readBy: ['collector', 'cli'],
    bytesMax: mebibyte,
  },
  sessionClosed: {
    stream: 'TURNS',
    subject: 'session.closed',
    tokens: sessionTokens,
    codec: SessionClosed,
    kind: 'once',
    by: ['collector'],
    readBy: ['gateway', 'judge', 'trainer', 'cli'],
    bytesMax: 4 * mebibyte,
  },
  feedbackGiven: {
    stream: 'TURNS',
    subject: 'feedback.given',
    tokens: ['tenant', 'user', 'turn', 'digest'],
    codec: FeedbackGiven,
    kind: 'once',
    by: ['gateway'],
    readBy: ['collector', 'judge', 'trainer', 'publisher', 'cli'],
    bytesMax: 4 * mebibyte,
  },
  personErased: {
    stream: 'TURNS',
    subject: 'person.erased',
    tokens: ['tenant', 'user'],
    codec: PersonErased,
    kind: 'once',
    by: ['gateway', 'cli'],
    readBy: ['collector', 'judge', 'trainer', 'publisher'],
    bytesMax: mebibyte,
  },
  batchClosed: {
    stream: 'WEIGHTS',
    subject: 'batch.closed',
    tokens: ['policy'],
    codec: BatchClosed,
    kind: 'chain',
    by: ['trainer'],
    readBy: ['judge', 'publisher', 'cli'],
    bytesMax: 32 * mebibyte,
  },
  weightsTrained: {
    stream: 'WEIGHTS',
    subject: 'weights.trained',
    tokens: ['policy'],
    codec: WeightsTrained,
    kind: 'chain',
    by: ['trainer'],
    readBy: ['publisher', 'loader', 'cli'],
    bytesMax: 4 * mebibyte,
  },
  weightsStaged: {
    stream: 'WEIGHTS',
    subject: 'weights.staged',
    tokens: ['policy'],
    codec: WeightsStaged,
    kind: 'chain',
    by: ['publisher'],
    readBy: ['gateway', 'collector', 'judge', 'trainer', 'loader', 'cli'],
    bytesMax: 4 * mebibyte,
  },
};

const names: { readonly [N in FactName]: N } = {
  turnOpened: 'turnOpened',
  turnCompleted: 'turnCompleted',
  turnContinued: 'turnContinued',
  turnJudged: 'turnJudged',
  sessionEnded: 'sessionEnded',
  sessionClosed: 'sessionClosed',
  feedbackGiven: 'feedbackGiven',
  personErased: 'personErased',
  batchClosed: 'batchClosed',
  weightsTrained: 'weightsTrained',
  weightsStaged: 'weightsStaged',
};
export const factNames: readonly FactName[] = Object.values(names);

export function mayRead(service: BrokerService, name: FactName): boolean {
  return catalogue[name].readBy.includes(service) || catalogue[name].by.includes(service);
}
