// Facts about a turn as the other services would store them. For tests only.
// In: what matters to the test. Out: whole facts; everything else has a plain value.
import { fakePromptIds } from '@backtalk/dialects/testing';
import { Conversation_Encoding, TurnCompleted, TurnJudged, TurnOpened } from '@backtalk/proto/facts';
import { deflateRawSync } from 'node:zlib';

export interface TurnShape {
  readonly turn: string;
  readonly tenant?: string;
  readonly user?: string;
  readonly policy?: string;
  readonly version?: string;
  readonly verdict?: number;
  readonly hint?: string;
  readonly session?: string;
  /** The hint is said to hold beyond this turn. */
  readonly stands?: boolean;
  readonly revision?: number;
  readonly temperature?: number;
  readonly finishReason?: string;
  readonly reasons?: readonly string[];
  readonly judged?: Partial<TurnJudged>;
  readonly promptIds?: readonly number[];
  readonly answerIds?: readonly number[];
  /** Lessons that it was answered with, behind the first message. */
  readonly shown?: readonly { readonly lesson: string; readonly text: string }[];
  /** JSON in place of the usual messages and tools; kept deflated, as the gateway keeps what that makes smaller. */
  readonly messages?: string;
  readonly tools?: string;
  /** An earlier turn whose messages come before these. */
  readonly base?: string;
  readonly templateArguments?: string;
  /** Of attempts at one task. */
  readonly group?: string;
  /** Answers before it in its request. */
  readonly step?: number;
}

const defaultTenant = 'tenant0';

/** Ids that differ from turn to turn, so that no two turns are near-duplicates by accident. */
function idsOf(seed: string, count: number): number[] {
  let value = [...seed].reduce((sum, letter) => Math.imul(sum, 31) + letter.charCodeAt(0), 7) >>> 0;
  return Array.from({ length: count }, () => {
    value = (Math.imul(value, 1_664_525) + 1_013_904_223) >>> 0;
    return value % 49_000;
  });
}

/** The request of a turn whose messages are not given; an engine without a model renders it as the ids of `completedTurn`. */
function questionOf(turn: string) {
  return { role: 'user', content: `${turn}?` };
}

export function openedTurn({
  turn,
  tenant = defaultTenant,
  user = 'user0',
  policy = 'backtalk',
  messages = JSON.stringify([questionOf(turn)]),
  tools = '',
  base = '',
  templateArguments = '',
  group = '',
  step = 0,
}: TurnShape): TurnOpened {
  return TurnOpened.fromPartial({
    turn,
    tenant,
    user,
    policy,
    conversation: {
      encoding: Conversation_Encoding.ENCODING_JSON_DEFLATE,
      messages: deflateRawSync(messages),
      tools: tools === '' ? new Uint8Array() : deflateRawSync(tools),
      templateArguments: Buffer.from(templateArguments),
      baseTurn: base,
      sharedMessages: base === '' ? 0 : 1,
    },
    consent: { train: true, source: 'default' },
    group,
    answerKeys: Array.from({ length: step }, (_, at) => `key${at}`),
  });
}

export function completedTurn(shape: TurnShape): TurnCompleted {
  const {
    turn,
    tenant = defaultTenant,
    user = 'user0',
    policy = 'backtalk',
    version = `${policy}-v0`,
    reasons = [],
  } = shape;
  const answerIds = [...(shape.answerIds ?? idsOf(`answer ${turn}`, 12))];
  return TurnCompleted.fromPartial({
    turn,
    tenant,
    user,
    policy,
    weightsVersion: version,
    weightsVersionAtEnd: version,
    engine: 'engine0',
    promptIds: [...(shape.promptIds ?? fakePromptIds([questionOf(turn)]))],
    answerIds,
    logprobs: answerIds.map(() => -1.5),
    text: `Answer of ${turn}.`,
    finishReason: shape.finishReason ?? 'stop',
    sampling: { temperature: shape.temperature ?? 0.8, topP: 1, topK: -1, minP: 0, maxTokens: 48, plain: true },
    trainable: reasons.length === 0,
    untrainableReasons: [...reasons],
    answerKey: `key${turn}`,
    ...(shape.shown === undefined ? {} : { shown: { lessons: [...shape.shown], message: 0 } }),
  });
}

export function judgedTurn(shape: TurnShape): TurnJudged {
  const { turn, tenant = defaultTenant, user = 'user0', policy = 'backtalk', verdict = -1 } = shape;
  const { hint = '', revision = 0, session = 'session0', stands = false } = shape;
  return TurnJudged.fromPartial({
    turn,
    tenant,
    user,
    policy,
    session,
    stands,
    revision,
    verdict,
    hint,
    ...shape.judged,
  });
}
