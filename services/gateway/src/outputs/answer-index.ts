// What the gateways remember of answers they gave, in Valkey: enough to recognise a conversation when it goes on.
//
// In: a finished turn. Out: the turns that gave an answer, and what is known of a session. Everything here is a guess
// that the collector checks against the log: losing it loses nothing.
import { z } from 'zod';
import type { RememberedTurn } from '../domain/continuation.js';
import type { Valkey } from './valkey.js';

interface RememberedSession {
  readonly turn: string;
  readonly train: boolean;
}

interface Recalled {
  /** For each key asked for, the turns that gave that answer, newest first. */
  readonly turns: readonly (readonly RememberedTurn[])[];
  readonly session: RememberedSession | undefined;
}

const rememberedTurn = z.object({
  turn: z.string(),
  session: z.string(),
  policy: z.string().default(''),
  train: z.boolean(),
  earlier: z.array(z.string()),
  question: z.string().default(''),
  conversation: z.object({ messages: z.number(), digest: z.string(), depth: z.number() }),
});
const rememberedSession = z.object({ turn: z.string(), train: z.boolean() });

const turnsOfAnswerMax = 8;
const prefix = 'backtalk:gateway';

/** One command in place of four: this is written for every turn, while its final frame is held. */
const rememberSession = `redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])`;
const rememberBoth = `${rememberSession}
redis.call('LPUSH', KEYS[2], ARGV[3])
redis.call('LTRIM', KEYS[2], 0, ${turnsOfAnswerMax - 1})
redis.call('PEXPIRE', KEYS[2], ARGV[2])`;

/** Subject and session together, because a session is known only to its own user. */
interface SessionName {
  readonly tenant: string;
  readonly user: string;
  readonly session: string;
}

export class AnswerIndex {
  constructor(
    private readonly valkey: Valkey,
    private readonly keepMs: number,
  ) {}

  /** Empty when Valkey does not answer in time. */
  async recall(answerKeys: readonly string[], session: SessionName | undefined): Promise<Recalled> {
    if (answerKeys.length === 0 && session === undefined) return { turns: [], session: undefined };
    const found = await this.valkey.attempt('recall', (client) =>
      Promise.all([
        Promise.all(answerKeys.map((key) => client.lrange(answerName(key), 0, turnsOfAnswerMax - 1))),
        session === undefined ? null : client.get(sessionName(session)),
      ]),
    );
    const [turns = [], known = null] = found ?? [];
    return {
      turns: turns.map((entries) => entries.flatMap((entry) => readJson(rememberedTurn, entry) ?? [])),
      session: known === null ? undefined : readJson(rememberedSession, known),
    };
  }

  /** The session as it was last seen; undefined when unknown or when Valkey does not answer. */
  async session(name: SessionName): Promise<RememberedSession | undefined> {
    return (await this.recall([], name)).session;
  }

  async remember(answerKey: string, turn: RememberedTurn, name: SessionName): Promise<void> {
    const session: RememberedSession = { turn: turn.turn, train: turn.train };
    const known = JSON.stringify(session);
    await this.valkey.attempt('remember', (client) =>
      answerKey === ''
        ? client.eval(rememberSession, 1, sessionName(name), known, this.keepMs)
        : client.eval(
            rememberBoth,
            2,
            sessionName(name),
            answerName(answerKey),
            known,
            this.keepMs,
            JSON.stringify(turn),
          ),
    );
  }
}

function answerName(key: string): string {
  return `${prefix}:answer:${key}`;
}

function sessionName({ tenant, user, session }: SessionName): string {
  return `${prefix}:session:${tenant}:${user}:${session}`;
}

/** Undefined for anything that an older or newer gateway wrote differently. */
function readJson<T>(schema: z.ZodType<T>, text: string): T | undefined {
  try {
    return schema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
