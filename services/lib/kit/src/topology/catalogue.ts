// The one table of all facts. Subjects, filters, streams, publishers, readers, consumers and the broker's permissions
// derive from a fact's row, and so do its types. The log keeps old facts readable: fields are added to a message, never changed.
import {
  BatchClosed,
  FeedbackGiven,
  JudgementAsked,
  LessonChanged,
  SampleTaken,
  SessionClosed,
  SessionEnded,
  TurnCompleted,
  TurnContinued,
  TurnJudged,
  TurnOpened,
  TurnRejudged,
  TurnWithheld,
  WeightsStaged,
  WeightsTrained,
} from '@backtalk/proto/facts';
import type { BrokerService } from './users.js';

/** Writes messages one after another, each from an empty start. */
export type FactWriter = ReturnType<typeof TurnOpened.encode>;

export interface FactCodec<M> {
  encode(message: M, writer?: FactWriter): FactWriter;
  decode(bytes: Uint8Array): M;
}

/** The fields of a message that a subject can hold: texts and numbers. */
type TokenOf<M> = { [K in keyof M & string]: M[K] extends string | number ? K : never }[keyof M & string];

export interface FactRow<M, T extends string = string, S extends string = string> {
  readonly codec: FactCodec<M>;
  readonly stream: S;
  /** Noun and verb, in the past tense. */
  readonly subject: string;
  /** The fields of the message that follow in its subject, in this order. */
  readonly tokens: readonly T[];
  /** `once`: one message a subject, ever. `chain`: each message names the one before it. */
  readonly kind: 'once' | 'chain';
  readonly publishers: readonly BrokerService[];
  /** Who may read it. Those who publish it may, too. */
  readonly readers: readonly BrokerService[];
  /** Who has durable consumers of it, which are its own alone. */
  readonly consumers: readonly BrokerService[];
  /** Encoded, wherever it is stored. */
  readonly bytesMax: number;
}

/** Ties a row's tokens to the fields of its message: a wrong one does not compile. */
export function fact<M, T extends TokenOf<M>, const S extends string>(row: FactRow<M, T, S>): FactRow<M, T, S> {
  return row;
}

const mebibyte = 1024 * 1024;

const rows = {
  turnOpened: fact({
    codec: TurnOpened,
    stream: 'TURNS',
    subject: 'turn.opened',
    tokens: ['tenant', 'user', 'turn'],
    kind: 'once',
    publishers: ['gateway'],
    readers: ['collector', 'judge', 'trainer', 'publisher', 'cli'],
    consumers: ['collector'],
    bytesMax: 32 * mebibyte,
  }),
  turnCompleted: fact({
    codec: TurnCompleted,
    stream: 'TURNS',
    subject: 'turn.completed',
    tokens: ['tenant', 'user', 'turn'],
    kind: 'once',
    publishers: ['gateway'],
    readers: ['collector', 'judge', 'trainer', 'publisher', 'cli'],
    consumers: ['collector'],
    bytesMax: 32 * mebibyte,
  }),
  turnContinued: fact({
    codec: TurnContinued,
    stream: 'TURNS',
    subject: 'turn.continued',
    tokens: ['tenant', 'user', 'turn'],
    kind: 'once',
    publishers: ['collector'],
    readers: ['gateway', 'judge', 'trainer', 'publisher', 'cli'],
    consumers: ['judge'],
    bytesMax: 32 * mebibyte,
  }),
  turnWithheld: fact({
    codec: TurnWithheld,
    stream: 'TURNS',
    subject: 'turn.withheld',
    tokens: ['tenant', 'user', 'source', 'session', 'turn'],
    kind: 'once',
    // The gateway says it of turns that it does not store.
    publishers: ['gateway', 'collector'],
    readers: ['judge', 'cli'],
    consumers: ['collector'],
    bytesMax: mebibyte,
  }),
  turnJudged: fact({
    codec: TurnJudged,
    stream: 'TURNS',
    subject: 'turn.judged',
    tokens: ['tenant', 'user', 'policy', 'turn', 'revision'],
    kind: 'once',
    publishers: ['judge'],
    readers: ['gateway', 'collector', 'trainer', 'publisher', 'cli'],
    consumers: ['trainer'],
    bytesMax: 4 * mebibyte,
  }),
  judgementAsked: fact({
    codec: JudgementAsked,
    stream: 'TURNS',
    subject: 'judgement.asked',
    tokens: ['tenant', 'user', 'policy', 'turn', 'asked'],
    kind: 'once',
    publishers: ['cli'],
    readers: ['judge'],
    consumers: ['judge'],
    bytesMax: mebibyte,
  }),
  /** Beside what was judged: no batch takes it. */
  turnRejudged: fact({
    codec: TurnRejudged,
    stream: 'TURNS',
    subject: 'turn.rejudged',
    tokens: ['tenant', 'user', 'policy', 'turn', 'asked'],
    kind: 'once',
    publishers: ['judge'],
    readers: ['trainer', 'cli'],
    consumers: [],
    bytesMax: 4 * mebibyte,
  }),
  sessionEnded: fact({
    codec: SessionEnded,
    stream: 'TURNS',
    subject: 'session.ended',
    tokens: ['tenant', 'user', 'session'],
    kind: 'once',
    publishers: ['gateway'],
    readers: ['collector', 'cli'],
    consumers: ['collector'],
    bytesMax: mebibyte,
  }),
  sessionClosed: fact({
    codec: SessionClosed,
    stream: 'TURNS',
    subject: 'session.closed',
    tokens: ['tenant', 'user', 'session'],
    kind: 'once',
    publishers: ['collector'],
    readers: ['gateway', 'judge', 'trainer', 'cli'],
    consumers: ['judge'],
    bytesMax: 4 * mebibyte,
  }),
  feedbackGiven: fact({
    codec: FeedbackGiven,
    stream: 'TURNS',
    subject: 'feedback.given',
    tokens: ['tenant', 'user', 'turn', 'digest'],
    kind: 'once',
    publishers: ['gateway'],
    readers: ['collector', 'judge', 'trainer', 'publisher', 'cli'],
    consumers: ['judge'],
    bytesMax: 4 * mebibyte,
  }),
  /** In the stream of turns, so that a mark goes after the turn that it marks. */
  sampleTaken: fact({
    codec: SampleTaken,
    stream: 'TURNS',
    subject: 'sample.taken',
    tokens: ['tenant', 'user', 'policy', 'turn'],
    kind: 'chain',
    publishers: ['trainer'],
    readers: ['cli'],
    consumers: [],
    bytesMax: mebibyte,
  }),
  batchClosed: fact({
    codec: BatchClosed,
    stream: 'WEIGHTS',
    subject: 'batch.closed',
    tokens: ['policy'],
    kind: 'chain',
    publishers: ['trainer'],
    readers: ['gateway', 'judge', 'publisher', 'cli'],
    consumers: [],
    bytesMax: 32 * mebibyte,
  }),
  /** In the stream of weights, so that it lives as long as the lessons that it made. */
  lessonChanged: fact({
    codec: LessonChanged,
    stream: 'WEIGHTS',
    subject: 'lesson.changed',
    tokens: ['tenant', 'policy', 'id'],
    kind: 'once',
    publishers: ['gateway', 'cli'],
    readers: ['trainer'],
    consumers: ['trainer'],
    bytesMax: mebibyte,
  }),
  weightsTrained: fact({
    codec: WeightsTrained,
    stream: 'WEIGHTS',
    subject: 'weights.trained',
    tokens: ['policy'],
    kind: 'chain',
    publishers: ['trainer'],
    readers: ['publisher', 'loader', 'cli'],
    consumers: ['publisher'],
    bytesMax: 4 * mebibyte,
  }),
  weightsStaged: fact({
    codec: WeightsStaged,
    stream: 'WEIGHTS',
    subject: 'weights.staged',
    tokens: ['policy'],
    kind: 'chain',
    publishers: ['publisher'],
    readers: ['gateway', 'collector', 'judge', 'trainer', 'loader', 'cli'],
    consumers: ['trainer'],
    bytesMax: 4 * mebibyte,
  }),
};

type Rows = typeof rows;
type Messages = { [N in FactName]: Rows[N] extends FactRow<infer M> ? M : never };

export type FactName = keyof Rows;
export type FactMessage<N extends FactName> = Messages[N];
export type FactStream = Rows[FactName]['stream'];
type FactToken<N extends FactName> = Rows[N]['tokens'][number];
/** Some or all of a subject's tokens; those left out match anything. */
export type FactIds<N extends FactName> = Readonly<Partial<Record<FactToken<N>, string | number>>>;

export const catalogue: { readonly [N in FactName]: FactRow<FactMessage<N>, FactToken<N>, FactStream> } = rows;

export const factNames = Object.keys(rows) as readonly FactName[];

export const factStreams: readonly FactStream[] = [...new Set(factNames.map((name) => catalogue[name].stream))];

export function mayRead(service: BrokerService, name: FactName): boolean {
  return catalogue[name].readers.includes(service) || catalogue[name].publishers.includes(service);
}

/** The durable consumers that a fact can have, with the service whose own each is. */
export interface Durable {
  readonly service: BrokerService;
  readonly name: FactName;
  readonly stream: FactStream;
}

export const durables: readonly Durable[] = factNames.flatMap((name) => {
  const { stream, consumers } = catalogue[name];
  return consumers.map((service) => ({ service, name, stream }));
});
