import { chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { freePort, TemporaryDirectory } from '@backtalk/kit/testing';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { judgeModel, reasonOfJudge, type JudgeFlags } from './judge-model.js';
import { portsFrom } from './ports.js';
import { machineProcesses } from './processes.js';
import { loadSecrets } from './secrets.js';
import { lastJudge, writeConnection } from './connection.js';
import { openDataFolder } from './data-folder.js';

const directory = new TemporaryDirectory('judge-model');
const keyFile = directory.join('key');
const key = 'sk-of-the-test-0123456789';
const models = { data: [{ id: 'reader' }, { id: 'reader-v1', parent: 'reader' }] };

let server: Server;
let url: string;
/** What the address says to a request that brings this key. */
let answer: (authorization: string | undefined) => readonly [number, unknown];

beforeEach(async () => {
  answer = () => [200, models];
  const port = await freePort();
  server = createServer((request, response) => {
    const [status, body] = answer(request.headers.authorization);
    response.writeHead(request.url === '/v1/models' ? status : 404).end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${String(port)}/v1`;
  rmSync(keyFile, { recursive: true, force: true });
  writeFileSync(keyFile, `${key}\n`, { mode: 0o600 });
});

afterEach(() => {
  server.closeAllConnections();
  server.close();
});

afterAll(() => {
  directory.remove();
});

const flags = (said: Partial<JudgeFlags>): JudgeFlags => ({
  url: undefined,
  model: undefined,
  keyFile: undefined,
  ...said,
});

describe('a judge that flags name', () => {
  it('a named judge is the only model that is served there, adapters aside, and brings the key of its file', async () => {
    answer = (authorization) => (authorization === `Bearer ${key}` ? [200, models] : [401, {}]);
    const judge = await judgeModel(flags({ url, keyFile }), undefined);
    expect(judge).toEqual({ url, model: 'reader', keyFile, key, away: '' });
    expect(reasonOfJudge(judge, {})).toBe(`reader at ${url} votes in words (--judge-url; key of ${keyFile})`);
  });

  it('a named judge is kept from start to start without its key, and taken away by none', async () => {
    const data = openDataFolder(directory.join('data'));
    const secrets = loadSecrets(data.path);
    const judge = await judgeModel(flags({ url, keyFile }), undefined);
    const start = { data, ports: portsFrom(30_000), secrets, host: '127.0.0.1', policies: ['backtalk'] };
    writeConnection({ ...start, judge });
    expect(readFileSync(data.connection, 'utf8')).not.toContain(key);
    expect(lastJudge(data)).toEqual({ url, model: 'reader', keyFile });
    expect(await judgeModel(flags({}), lastJudge(data))).toEqual(judge);
    expect(await judgeModel(flags({ url: 'none' }), lastJudge(data))).toBeUndefined();
    writeConnection(start);
    expect(lastJudge(data)).toBeUndefined();
  });

  it('the start never sends the key of one address to another', async () => {
    let brought: string | undefined = 'nothing was asked';
    answer = (authorization) => {
      brought = authorization;
      return [200, models];
    };
    await judgeModel(flags({ url }), { url: 'https://elsewhere/v1', model: 'other', keyFile });
    expect(brought).toBeUndefined();
  });

  it('a judge that was there at an earlier start may be away, and is refused where this start names it', async () => {
    const gone = `http://127.0.0.1:${String(await freePort())}`;
    const kept = { url: gone, model: 'reader' };
    const away = 'it does not answer (The engine cannot be reached (ECONNREFUSED))';
    expect(await judgeModel(flags({}), kept)).toMatchObject({ ...kept, away });
    await expect(judgeModel(flags({ url: gone }), undefined)).rejects.toThrow(
      `--judge-url ${gone} cannot judge: ${away}.`,
    );
  });

  it.each<[string, Partial<JudgeFlags>, readonly [number, unknown], RegExp]>([
    ['a key that is missing', {}, [401, {}], /it asks for a key \(--judge-key-file FILE\)/],
    ['a key that is refused', { keyFile }, [403, {}], /it refuses the key of .*key\.$/],
    ['another model', { model: 'writer' }, [200, models], /it has no model writer, but reader, reader-v1/],
    ['several models', {}, [200, { data: [{ id: 'a' }, { id: 'b' }] }], /it serves a, b: name one with --judge-model/],
    ['no model', {}, [200, { data: [] }], /it serves none: name one with --judge-model/],
    ['no list of models', {}, [200, { models: [] }], /it gives no list of models at \/v1\/models/],
    ['another API', {}, [404, {}], /it gives no list of models at \/v1\/models/],
    ['an address that is overloaded', {}, [503, {}], /it does not answer/],
  ])('a judge is refused in one line for %s', async (_, said, says, words) => {
    answer = () => says;
    const refused = judgeModel(flags({ url, ...said }), undefined);
    await expect(refused).rejects.toThrow(words);
    await expect(refused).rejects.toThrow(/^--judge-url http[^\n]+\.$/);
    await expect(refused).rejects.not.toThrow(key);
  });

  it.each<[string, () => void, RegExp]>([
    ['is not there', () => rmSync(keyFile), /is not there/],
    ['is empty', () => writeFileSync(keyFile, ' \n'), /is empty/],
    ['others can read', () => chmodSync(keyFile, 0o640), /can be read by others \(chmod 600 it\)/],
    ['holds two keys', () => writeFileSync(keyFile, `${key}\n${key}`), /holds more than one key/],
    [
      'is a folder',
      () => {
        rmSync(keyFile);
        mkdirSync(keyFile, { mode: 0o700 });
      },
      /cannot be read \(EISDIR\)/,
    ],
  ])('a judge is refused in one line for a key file that %s', async (_, spoil, words) => {
    spoil();
    await expect(judgeModel(flags({ url, keyFile }), undefined)).rejects.toThrow(words);
  });

  it('a judge needs an address before a model or a key', async () => {
    const refused = judgeModel(flags({ model: 'reader' }), undefined);
    await expect(refused).rejects.toThrow("--judge-model 'reader' is not usable without --judge-url");
  });
});

describe('the key of a judge', () => {
  const processesOf = (judge: object | undefined, environment: Readonly<Record<string, string>>) => {
    const data = openDataFolder(directory.join('machine'));
    const root = directory.path;
    mkdirSync(directory.join('.venv', 'lib'), { recursive: true });
    const secrets = loadSecrets(data.path);
    const own = judge === undefined ? {} : { judge: { url, model: 'reader', key, ...judge } };
    const machine = { root, data, ports: portsFrom(24_000), host: '127.0.0.1', secrets, model: '' };
    const { servers, workers, services } = machineProcesses({ ...machine, policies: ['p'], environment, ...own });
    return [...servers, ...workers, ...services];
  };

  const inEnvironment = { BACKTALK_JUDGE_URL: 'http://judges', BACKTALK_ENGINE_KEY: key, BACKTALK_JUDGE_KEY: key };

  it.each([
    ['flags', {}, {}, ['judge BACKTALK_ENGINE_KEY', 'trainer BACKTALK_JUDGE_KEY']],
    [
      'the environment',
      undefined,
      { ...inEnvironment, BACKTALK_JUDGE_BACKEND: 'free' },
      ['judge BACKTALK_ENGINE_KEY', 'trainer BACKTALK_JUDGE_KEY'],
    ],
    ['the environment for a judge that reads words', undefined, inEnvironment, ['judge BACKTALK_ENGINE_KEY']],
  ])(
    'a key from %s is given to those alone who ask it, and stands in no command line',
    (_, judge, environment, wanted) => {
      const processes = processesOf(judge, environment);
      const holders = processes.flatMap(({ name, env }) =>
        Object.entries(env).flatMap(([variable, value]) => (value.includes(key) ? [`${name} ${variable}`] : [])),
      );
      expect(holders).toEqual(wanted);
      expect(processes.flatMap(({ args }) => args).join(' ')).not.toContain(key);
    },
  );

  it('judge and trainer ask a named judge in words, at the address that flags name, whatever the environment names', () => {
    const processes = processesOf({}, { BACKTALK_JUDGE_URL: 'http://other' });
    const [judge, trainer] = ['judge', 'trainer'].map((wanted) => processes.find(({ name }) => name === wanted));
    const named = {
      BACKTALK_JUDGE_URL: url,
      BACKTALK_JUDGE_MODEL: 'reader',
      BACKTALK_JUDGE_DIALECT: 'openai',
      BACKTALK_JUDGE_BACKEND: 'free',
    };
    expect(judge?.env).toMatchObject(named);
    expect(trainer?.env).toMatchObject(named);
    expect(trainer?.env['BACKTALK_ENGINE_KEY']).not.toBe(key);
    expect(judge?.env).not.toHaveProperty('BACKTALK_JUDGE_VOTE_SHARE');
  });
});

const votes = { BACKTALK_JUDGE_BACKEND: 'free' };
const wordsJudge =
  "words and tools' fields (the base model's votes are no better; --judge-url URL names a model that reads)";

it.each([
  [{ ...votes, BACKTALK_JUDGE_URL: 'http://judges' }, 'votes of http://judges (BACKTALK_JUDGE_URL)'],
  [votes, 'votes of the serving engine (BACKTALK_JUDGE_VOTE_SHARE 1)'],
  [{ ...votes, BACKTALK_JUDGE_VOTE_SHARE: '0' }, wordsJudge],
  [{ ...votes, BACKTALK_JUDGE_VOTE_SHARE: '0.5' }, 'votes of the serving engine (BACKTALK_JUDGE_VOTE_SHARE 0.5)'],
  [{ BACKTALK_JUDGE_URL: 'http://judges', BACKTALK_JUDGE_VOTE_SHARE: '0.5' }, wordsJudge],
  [{}, wordsJudge],
])('the welcome says what judges where no flag names it: %j', (environment, words) => {
  expect(reasonOfJudge(undefined, environment)).toBe(words);
});
