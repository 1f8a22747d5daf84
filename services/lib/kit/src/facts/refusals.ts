// Who has said no, for longer than the log holds their turns. In: notes that a turn is withheld. Out: whether a person said no, in any
// turn or in one session. One small entry a person, without age, in bucket `refusals`: a "no" ends with a person's yes, not with time.
import { z } from 'zod';
import type { TurnWithheld } from '@backtalk/proto/facts';
import type { Broker } from '../broker/connect.js';
import { isBacktalkError } from '../errors/backtalk-error.js';
import { jsonCodec, kvBucket, type KvBucket } from '../kv/kv-bucket.js';

/** Sources of a "no" that a person or their operator said, here or before; "unknown" is none. */
export const refusalSources = ['key', 'request', 'session'] as const;

/** Beyond this, any session of the person that nothing is known of counts as one of theirs. */
const sessionsMax = 256;

const refusedSchema = z.object({
  /** In which they said no, newest last. */
  sessions: z.array(z.string()).max(sessionsMax),
  /** There were more than are listed. */
  more: z.boolean(),
});

type Refused = Readonly<z.infer<typeof refusedSchema>>;

interface Person {
  readonly tenant: string;
  readonly user: string;
}

export class Refusals {
  private readonly bucket: KvBucket<Refused>;

  constructor(broker: Broker) {
    this.bucket = kvBucket<Refused>(broker, 'refusals', jsonCodec(refusedSchema));
  }

  /** Safe to repeat, and for several writers at once. */
  async note({ tenant, user, session, source }: TurnWithheld): Promise<void> {
    if (!refusalSources.some((known) => known === source)) return;
    const key = `${tenant}.${user}`;
    for (;;) {
      const entry = await this.bucket.get(key);
      const before = entry?.value ?? { sessions: [], more: false };
      if (entry !== undefined && before.sessions.includes(session)) return;
      const sessions = [...before.sessions, session];
      const after = { sessions: sessions.slice(-sessionsMax), more: before.more || sessions.length > sessionsMax };
      try {
        await (entry === undefined ? this.bucket.create(key, after) : this.bucket.update(key, after, entry.revision));
        return;
      } catch (error) {
        // Another one wrote first: its entry is read.
        if (!isBacktalkError(error, 'kv_conflict')) throw error;
      }
    }
  }

  async said({ tenant, user, session }: Person & { readonly session?: string }): Promise<boolean> {
    const refused = (await this.bucket.get(`${tenant}.${user}`))?.value;
    if (refused === undefined) return false;
    return session === undefined || refused.more || refused.sessions.includes(session);
  }
}
