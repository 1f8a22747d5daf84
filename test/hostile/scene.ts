// A scratch installation that is attacked, with another client that goes on asking meanwhile.
import { request } from 'node:http';
import type { ProcessSpec } from '@backtalk/deploy';
import { LogBook } from '../loop/fact-log.js';
import { startTestMachine, type TestMachine } from '../loop/machine.js';
import type { Place } from './attack.js';
import { Probe } from './probe.js';
import type { Noted } from './probe-main.js';
import { countsOf } from './report.js';

export interface Reply {
  /** 0 where the connection broke or nothing came in time. */
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly text: string;
}

export interface Sent {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
  /** Without one, no media type is named. */
  readonly type?: string;
  readonly withinMs?: number;
}

export interface Scene {
  readonly machine: TestMachine;
  readonly book: LogBook;
  /** Names of the installation's processes. */
  readonly processes: ReadonlySet<string>;
  /** Process id of the other client. */
  readonly otherPid: number;
  /** Header of the attacker, who has a key of a tenant of its own; empty where no key is asked for. */
  readonly mallory: Readonly<Record<string, string>>;
  /** And of one who attacks by words alone, whose share of the log no flood has used up. */
  readonly teller: Readonly<Record<string, string>>;
  /** Header of a client of the attacker's tenant whose share of the log is small. */
  readonly filler: Readonly<Record<string, string>>;
  /** And of another such client. */
  readonly presser: Readonly<Record<string, string>>;
  /** Header of another tenant's client, who talks and corrects. */
  readonly bob: Readonly<Record<string, string>>;
  /** To the gateway's path, as JSON unless it says otherwise. */
  post(path: string, body: unknown, sent?: Sent): Promise<Reply>;
  /** Once, and again until the other client has been measured; gives what each round gave. */
  rounds<T>(round: () => Promise<T>): Promise<T[]>;
  /** Resolves when the other client has been measured since `noted`. */
  measured(): Promise<void>;
  /** What the other client noted since the last time; it begins anew. */
  noted(): Promise<Noted>;
  stop(): Promise<void>;
}

export const keys = {
  mallory: 'sk-mallory',
  teller: 'sk-teller',
  filler: 'sk-filler',
  presser: 'sk-presser',
  bob: 'sk-bob',
  calm: 'sk-calm',
};
const bearer = (key: string) => ({ authorization: `Bearer ${key}` });

/** What ends the engines of a `replicated` scene. */
export const deadlyWords = 'the words that end an engine';

function mortal(spec: ProcessSpec): ProcessSpec {
  return { ...spec, args: [...spec.args, '--dies-of', deadlyWords] };
}

/** Processes are changed by `adapt` before they start. */
export async function startScene(on: Place, adapt: (spec: ProcessSpec) => ProcessSpec): Promise<Scene> {
  const isKeyed = on === 'keyed' || on === 'replicated';
  const processes = new Set<string>();
  const machine = await startTestMachine({
    engine: on === 'laptop' ? 'builtin' : 'stand-in',
    training: 'stand-in',
    ...(isKeyed && {
      keys: [
        { key: keys.mallory, tenant: 'evil', user: 'mallory', policies: ['backtalk'] },
        { key: keys.teller, tenant: 'words', user: 'teller', policies: ['backtalk'] },
        ...['filler' as const, 'presser' as const].map((user) => ({
          key: keys[user],
          tenant: 'evil',
          user,
          policies: ['backtalk'],
          limits: { captureBytesPerDay: 4e6 },
        })),
        { key: keys.bob, tenant: 'other', user: 'bob', policies: ['backtalk'] },
        // It asks without a pause for as long as attacks go on, so that its share of the log is used up before they end.
        { key: keys.calm, tenant: 'calm', user: 'calm', policies: ['backtalk'] },
      ],
    }),
    adapt: (spec) => {
      processes.add(spec.name);
      return adapt(on === 'replicated' && spec.name === 'engine' ? mortal(spec) : spec);
    },
    environment: { trainer: { BACKTALK_RECIPE_SET: 'effective=4,effectiveMin=4' } },
  });
  if (on === 'replicated')
    for (const number of ['2', '3']) {
      await machine.addEngine();
      for (const name of ['engine', 'loader']) processes.add(`${name}-${number}`);
    }
  const book = await LogBook.open(machine);
  const probe = new Probe(machine.gateway, isKeyed ? keys.calm : '');
  const mallory = isKeyed ? bearer(keys.mallory) : {};
  return {
    machine,
    book,
    processes,
    otherPid: probe.pid,
    mallory,
    teller: isKeyed ? bearer(keys.teller) : {},
    filler: isKeyed ? bearer(keys.filler) : {},
    presser: isKeyed ? bearer(keys.presser) : {},
    bob: isKeyed ? bearer(keys.bob) : {},
    post: (path, body, sent = {}) =>
      send(`${machine.gateway}${path}`, {
        type: 'application/json',
        ...sent,
        headers: { ...mallory, ...sent.headers },
        body: typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body),
      }),
    rounds: (round) => probe.rounds(round),
    measured: () => probe.measured(),
    noted: () => probe.noted(),
    stop: async () => {
      probe.stop();
      await book.close();
      await machine.stop();
    },
  };
}

/** Resolves after so many milliseconds. */
export function passed(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** One request as an attacker makes it, header by header; how it ends is an outcome here, not an exception. */
export function send(
  url: string,
  { method = 'POST', headers = {}, body = '', type, withinMs = 60_000 }: Sent,
): Promise<Reply> {
  return new Promise((resolve) => {
    const bytes = Buffer.from(body);
    const media = type === undefined ? {} : { 'content-type': type };
    const outgoing = request(url, { method, headers: { ...media, 'content-length': bytes.byteLength, ...headers } });
    const nothing = () => resolve({ status: 0, headers: {}, text: '' });
    const deadline = setTimeout(() => outgoing.destroy(), withinMs);
    outgoing.on('response', (response) => {
      const pieces: Buffer[] = [];
      response.on('data', (piece: Buffer) => pieces.push(piece));
      response.on('end', () => {
        const text = Buffer.concat(pieces).toString('utf8');
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text });
      });
      response.on('error', nothing);
    });
    outgoing.on('error', nothing);
    outgoing.on('close', () => {
      clearTimeout(deadline);
      nothing();
    });
    outgoing.end(bytes);
  });
}

/** `3 × 400, 1 × cut` */
export function statusesOf(replies: readonly Reply[]): string {
  return countsOf(replies.map(({ status }) => (status === 0 ? 'cut' : String(status))));
}
