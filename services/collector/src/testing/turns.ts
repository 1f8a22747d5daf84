// Turns as gateways write them, and a collector's configuration, for tests.
import type { TemporaryDirectory, TestNats, TestValkey } from '@backtalk/kit/testing';
import { laptopInstallation } from '@backtalk/kit/testing';
import { Conversation_Encoding, TurnCompleted, TurnOpened } from '@backtalk/proto/facts';
import type { CollectorConfig } from '../service.js';

export const tenant = 'tenant';
const policy = 'backtalk';
export const turnPattern = (name: string) => `turn_${name.padEnd(8, '0')}`;

export interface Said {
  readonly turn: string;
  readonly user: string;
  readonly messages: readonly unknown[];
  readonly answerKeys?: readonly string[];
  readonly questionKeys?: readonly string[];
  readonly parent?: string;
  readonly session?: string;
  /** The client's own name for the session. */
  readonly declared?: string;
  /** What the request's header says; nothing where there is none. */
  readonly train?: boolean;
}

export function opened(said: Said): TurnOpened {
  const { turn, user, messages, answerKeys = [], questionKeys = [], parent = '', train } = said;
  return TurnOpened.fromPartial({
    turn,
    tenant,
    user,
    policy,
    answerKeys: [...answerKeys],
    questionKeys: [...questionKeys],
    conversation: { encoding: Conversation_Encoding.ENCODING_JSON, messages: Buffer.from(JSON.stringify(messages)) },
    consent: { train: train ?? true, source: train === undefined ? 'default' : 'request' },
    provisionalParent: parent,
    declaredSession: said.declared ?? '',
    provisionalSession: said.session ?? turn.replace('turn_', 'session_'),
  });
}

export function completed(turn: string, user: string, answerKey: string, session?: string): TurnCompleted {
  return TurnCompleted.fromPartial({
    turn,
    tenant,
    user,
    policy,
    answerKey,
    provisionalSession: session ?? turn.replace('turn_', 'session_'),
  });
}

export function configFor(nats: TestNats, valkey: TestValkey, blobs: TemporaryDirectory): CollectorConfig {
  const { url, user, password } = nats.credentials('collector');
  return {
    natsUrl: url,
    natsUser: user,
    natsPassword: password,
    valkeyUrl: valkey.url,
    healthAddress: { host: '127.0.0.1', port: 0 },
    logLevel: 'silent',
    ackWaitMs: 2_000,
    instance: 'test',
    ...laptopInstallation(blobs.path),
    sessionIdleMs: 600_000,
    indexKeepMs: 3_600_000,
  };
}
