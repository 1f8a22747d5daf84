import type { FactReader } from '@backtalk/kit';
import { FakeClock } from '@backtalk/kit/testing';
import { expect, it } from 'vitest';
import type { Events } from '../events.js';
import { Rebuilder } from './rebuild.js';
import type { TurnIndex } from './turn-index.js';

/** An opened turn as the log's headers say it. */
const opened = (sequence: number, turn: string, session: string) => ({
  name: 'turnOpened',
  sequence,
  timeMs: 0,
  subject: `backtalk.turn.opened.tenant.user.${turn}`,
  headers: { turn, session, policy: 'backtalk', train: 'default' },
});

/** What is written into an index that is filled from these. */
async function rebuilt(records: readonly ReturnType<typeof opened>[], closed: ReadonlySet<string>) {
  const written: unknown[][] = [];
  const asked: string[] = [];
  const answers: Readonly<Record<string, unknown>> = { isReady: false, currentLife: 'life' };
  const index: unknown = new Proxy(
    {},
    {
      get:
        (_target, name) =>
        (...given: unknown[]) => {
          written.push([name, ...given]);
          return Promise.resolve(answers[String(name)]);
        },
    },
  );
  const reader: unknown = {
    headers: async function* () {
      yield* await Promise.resolve(records);
    },
  };
  const events: unknown = { rebuilt: () => undefined };
  const rebuilder = new Rebuilder({
    index: index as TurnIndex,
    reader: reader as FactReader,
    events: events as Events,
    clock: new FakeClock(),
    keptSinceMs: () => Promise.resolve(0),
    readOld: () => Promise.resolve(undefined),
    noteRefusal: () => Promise.resolve(),
    wasClosed: (_owner, session) => {
      asked.push(session);
      return Promise.resolve(closed.has(session));
    },
    relink: () => Promise.resolve(),
  });
  await rebuilder.ensureReady();
  const sessionOf = (turn: string) =>
    written.flatMap(([name, of, fields]) => (name === 'putTurn' && of === turn ? [fields] : []))[0];
  return { written, asked, sessionOf };
}

it('a name whose session ended before all that is read stands for the session that was begun after it', async () => {
  const records = [opened(1, 'turn_a', 'session_mine'), opened(2, 'turn_b', 'session_mine')];
  const { written, asked, sessionOf } = await rebuilt(records, new Set(['session_mine']));
  for (const turn of ['turn_a', 'turn_b']) expect(sessionOf(turn)).toMatchObject({ session: 'session_a' });
  expect(written).toContainEqual(['putSuccessor', 'session_mine', 'session_a']);
  expect(written).toContainEqual(['markClosed', 'session_mine']);
  expect(asked).toEqual(['session_mine']);
});

it('a session that a request begins is not looked for among those that ended', async () => {
  const { asked, sessionOf } = await rebuilt([opened(1, 'turn_a', 'session_a')], new Set());
  expect(sessionOf('turn_a')).toMatchObject({ session: 'session_a' });
  expect(asked).toEqual([]);
});
