import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { FactPublisher, folderBlobStore } from '@backtalk/kit';
import { startNats, TemporaryDirectory, type TestNats } from '@backtalk/kit/testing';
import {
  BatchClosed,
  Conversation_Encoding,
  Provenance,
  TurnCompleted,
  TurnContinued,
  TurnOpened,
  WeightsTrained,
} from '@backtalk/proto/facts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { printCommand, runCommand, type Place } from '../testing/cluster-command.js';

const directory = new TemporaryDirectory('lessons-show');
const blobs = folderBlobStore(directory.join('blobs'));
const policy = 'backtalk';
const place = { tenant: 'tenant', user: 'user' };
const lesson = {
  id: 'lesson_1',
  policy,
  text: 'Use tables.',
  state: 'active',
  scope: 'user',
  user: 'user',
  hints: 2,
  wordings: [],
  progress: 0.4,
  measured: [
    { batch: 3, progress: 0.12 },
    { batch: 5, progress: null },
    { batch: 9, progress: 0.4 },
  ],
  asked_again: [{ question: 'Which one?', before: 'Both\nof them.', after: '| both |', batch: 3 }],
  steps: 2,
  since_batch: 2,
  first_turn: 'turn_1',
  cases: 2,
  ended_by: null,
  superseded_by: null,
  covered_by: null,
  waits_for: 'lesson_first',
  pending: false,
};

/** What the endpoint answers. */
let given: object = lesson;

let nats: TestNats;
let endpoint: Server;
let at: Place;

beforeAll(async () => {
  nats = await startNats();
  endpoint = createServer((_request, response) => {
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(given));
  });
  await new Promise<void>((resolve) => endpoint.listen(0, '127.0.0.1', resolve));
  const { port } = endpoint.address() as AddressInfo;
  const environment = {
    BACKTALK_BLOB_STORE: `folder:${directory.join('blobs')}`,
    BACKTALK_ENDPOINT: `http://127.0.0.1:${String(port)}/v1`,
  };
  at = { nats, user: 'cli', folder: directory.path, environment };
  for (const [number, said] of ['Tables!', 'As a table, I said.'].entries())
    await say(`turn_${String(number + 1)}`, said);
  const trainer = await publisherOf('trainer');
  const batch = { batch: 3, policy, version: 'backtalk-v1' };
  await trainer.publish('weightsTrained', WeightsTrained.fromPartial(batch), { expectSequence: 0 });
  const cases = ['turn_1', 'turn_2'].map((turn) => ({ ...place, turn }));
  const closed = BatchClosed.fromPartial({ policy, number: 9, lessons: [{ id: lesson.id, cases }, { id: 'another' }] });
  await trainer.publish('batchClosed', closed, { expectSequence: 0 });
});

afterAll(async () => {
  endpoint.closeAllConnections();
  endpoint.close();
  await nats.stop();
  directory.remove();
});

async function publisherOf(service: 'gateway' | 'collector' | 'trainer'): Promise<FactPublisher> {
  return new FactPublisher(await nats.connect(service), { blobs });
}

async function say(turn: string, then: string): Promise<void> {
  const gateway = await publisherOf('gateway');
  const ids = { ...place, turn, policy };
  const messages = Buffer.from(JSON.stringify([{ role: 'user', content: `Question of ${turn}?` }]));
  const conversation = { encoding: Conversation_Encoding.ENCODING_JSON, messages };
  await gateway.publish('turnOpened', TurnOpened.fromPartial({ ...ids, conversation }));
  await gateway.publish('turnCompleted', TurnCompleted.fromPartial({ ...ids, text: `Answer of ${turn}.` }));
  const nextState = [
    { text: 'a note of its client', provenance: Provenance.PROVENANCE_CLIENT },
    { text: then, provenance: Provenance.PROVENANCE_USER },
  ];
  await (await publisherOf('collector')).publish('turnContinued', TurnContinued.fromPartial({ ...ids, nextState }));
}

describe('lessons show', () => {
  it('a lesson is shown with the answers that it was said to, newest first, and how far each version came', async () => {
    const { stdout, stderr } = await printCommand(at, ['lessons', 'show', lesson.id]);
    expect(stderr).toBe('');
    expect(stdout).toMatch(/state {5}\S+, waiting/u);
    expect(stdout).toContain('waiting   for lesson_first, which is learned first');
    expect(stdout).toContain('by version backtalk-v1 0.12 · batch 5 – · batch 9 0.40');
    const told = ['Question of turn_2?  (turn_2)', 'answered  Answer of turn_2.', 'then      As a table, I said.'];
    const places = [...told, 'Question of turn_1?', 'then      Tables!'].map((words) => stdout.indexOf(words));
    expect(places).not.toContain(-1);
    expect(places).toEqual(places.toSorted((a, b) => a - b));
    expect(stdout).not.toContain('a note of its client');
    expect(stdout).toMatch(
      /Asked again of backtalk-v1, .*:\n {2}Which one\?\n {6}before {4}Both of them\.\n {6}now {7}\| both \|/u,
    );
  });

  it.each([
    [{}, 'learned: followed without being asked for'],
    [{ held: true }, 'learned: followed without being asked for'],
    [{ held: false }, 'learned, in part: answers follow it less than half of the way'],
  ])('a learned lesson with %j is said to be %s', async (held, words) => {
    given = { ...lesson, state: 'learned', waits_for: null, ...held };
    const { stdout } = await printCommand(at, ['lessons', 'show', lesson.id]);
    given = lesson;
    expect(stdout).toContain(`state     ${words}`);
  });

  it('a lesson that teachers have no room for says so, and how it comes back', async () => {
    given = { ...lesson, waits_for: null, shown: false };
    const { stdout } = await printCommand(at, ['lessons', 'show', lesson.id]);
    given = lesson;
    expect(stdout).toMatch(/state {5}active, no room: teachers are shown the newest twelve lessons.* activate it/u);
  });

  it.each([
    [['edit', 'lesson_1', 'Use tables.'], { pending: true }, 'It is to be learned in these words.'],
    [['edit', 'lesson_1', 'Use tables.'], { state: 'retired', pending: true }, 'It stays ended, in these words'],
    [['activate', 'lesson_1'], { pending: true }, 'It is to be learned again.'],
    [['activate', 'lesson_1'], {}, 'It is being learned.'],
    [['activate', 'lesson_1'], { covered_by: 'l2' }, 'in the words of l2, which does the same'],
    [['retire', 'lesson_1'], { state: 'retired', pending: true }, 'nor what it covers'],
  ])('lessons %j, answered with %j, says: %s', async (words, state, told) => {
    given = { ...lesson, waits_for: null, ...state };
    const { stdout } = await printCommand(at, ['lessons', ...words]);
    given = lesson;
    expect(stdout).toContain(told);
  });

  it('a lesson as JSON has its turns in full', async () => {
    const { values } = await runCommand(at, ['lessons', 'show', lesson.id]);
    expect(values).toMatchObject([
      {
        id: lesson.id,
        measured: lesson.measured,
        taught: [{ turn: 'turn_2' }, { turn: 'turn_1', nextState: 'Tables!' }],
      },
    ]);
  });

  it('a lesson is shown without its turns where the log cannot be read, and says why', async () => {
    const environment = { ...at.environment, BACKTALK_NATS_PASSWORD: 'another' };
    const { status, stdout } = await printCommand({ ...at, environment }, ['lessons', 'show', lesson.id]);
    expect(status).toBe(0);
    expect(stdout).toContain('“Use tables.”');
    expect(stdout).toMatch(/Its turns are in the log, which cannot be read from here: \S/);
  });
});

it.each([
  ['as many as are held', 64, true],
  ['one fewer', 63, false],
])('the list says that a new lesson pushes out the oldest where a person has %s', async (_, count, says) => {
  given = { data: Array.from({ length: count }, (_, n) => ({ ...lesson, id: `lesson_${String(n)}` })) };
  const { stdout } = await printCommand(at, ['lessons']);
  expect(stdout.includes('takes the place of the oldest')).toBe(says);
});
