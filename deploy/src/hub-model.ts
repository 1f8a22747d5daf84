// Base models that lie at the Hugging Face hub. In: what `--model` says. Out: a folder with the model, which stays in the data
// folder with the revision that was newest when it was first asked for. Python asks and fetches (backtalk_worker.model.hub); what
// cannot be served is refused by its small files, before its weights come. With all of it there, no network is asked.
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { environmentOf, folderBytes, inheritedEnvironment, type Room } from '@backtalk/kit';
import { z } from 'zod';
import { refuseBeforeWeights } from './base-model.js';
import { writePrivate } from './data-folder.js';
import { deployErrors } from './errors.js';
import type { Terminal } from './terminal.js';

export type ModelPlace = { readonly folder: string } | { readonly hub: string };

/** A path that exists is a folder; anything else of the form owner/name is an id at the hub. */
export function modelPlace(text: string, root: string): ModelPlace {
  const folder = resolve(root, text);
  const isFolder = statSync(folder, { throwIfNoEntry: false })?.isDirectory() === true;
  const isId = /^[A-Za-z0-9][\w.-]{0,95}\/[A-Za-z0-9][\w.-]{0,95}$/.test(text);
  return !isFolder && isId ? { hub: text } : { folder };
}

export interface HubFetch {
  readonly root: string;
  /** Of the data folder. */
  readonly models: string;
  /** owner/name */
  readonly id: string;
  /** Memory that may be taken. */
  readonly room: Room;
  readonly terminal: Pick<Terminal, 'step'>;
  /** Ctrl-C: what has come stays, and the next start goes on with it. */
  readonly signal: AbortSignal;
  readonly environment?: Readonly<Record<string, string>>;
  readonly sayEveryMs?: number;
}

/** What only this program is given: where the hub is, how to reach it, and the token. */
const hubVariables = [
  ...['HF_ENDPOINT', 'HF_TOKEN', 'HF_TOKEN_PATH', 'HF_HOME', 'HF_HUB_OFFLINE', 'HF_HUB_DOWNLOAD_TIMEOUT'],
  ...['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'NO_PROXY', 'http_proxy', 'https_proxy', 'all_proxy', 'no_proxy'],
  ...['XDG_CACHE_HOME', 'SSL_CERT_DIR'],
];
const hubEnvironment = () => ({ ...inheritedEnvironment(), ...environmentOf(hubVariables) });

/** Beside the model's folder: the revision, and whether all of it is there. */
const record = z.object({ revision: z.string(), complete: z.boolean() });
const found = z.object({ revision: z.string(), bytes: z.number(), parameters: z.number().nullable() });

const sayEveryDefaultMs = 10_000;

/** Undefined where there is none that can be read. */
function readRecord(file: string): z.infer<typeof record> | undefined {
  if (!existsSync(file)) return undefined;
  try {
    return record.safeParse(JSON.parse(readFileSync(file, 'utf8'))).data;
  } catch {
    return undefined;
  }
}

/** The folder with the model. */
export async function fetchHubModel(options: HubFetch): Promise<string> {
  const { models, id, room, terminal } = options;
  const folder = join(models, ...id.split('/'));
  const file = `${folder}.json`;
  const known = readRecord(file);
  // Of which revision its files are, nothing says any more.
  if (known === undefined && existsSync(file)) rmSync(folder, { recursive: true, force: true });
  if (known?.complete === true) return folder;
  const { revision, bytes, parameters } = await ask(options, folder, known?.revision, []);
  const keep = (complete: boolean) => {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    writePrivate(file, `${JSON.stringify({ revision, complete })}\n`);
  };
  keep(false);
  refuseBeforeWeights(folder, parameters ?? undefined, room);
  terminal.step(`${id}: fetching revision ${revision.slice(0, 12)}, ${megabytes(bytes)} MB, into ${folder}`);
  const say = () => {
    terminal.step(`${id}: ${megabytes(folderBytes(folder))} of ${megabytes(bytes)} MB`);
  };
  const timer = setInterval(say, options.sayEveryMs ?? sayEveryDefaultMs);
  try {
    await ask(options, folder, revision, ['--weights']);
  } finally {
    clearInterval(timer);
  }
  say();
  keep(true);
  return folder;
}

const megabytes = (bytes: number) => (bytes / 1e6).toFixed(0);

const run = promisify(execFile);
const failure = z.object({ stderr: z.string() });

async function ask(
  { root, id, signal, environment = hubEnvironment() }: HubFetch,
  folder: string,
  revision: string | undefined,
  flags: readonly string[],
): Promise<z.infer<typeof found>> {
  const pinned = revision === undefined ? [] : ['--revision', revision];
  const args = ['-W', 'ignore', '-m', 'backtalk_worker.model.hub', id, '--to', folder, ...pinned, ...flags];
  try {
    const { stdout } = await run(join(root, '.venv', 'bin', 'python'), args, { env: environment, signal });
    return found.parse(JSON.parse(stdout));
  } catch (error) {
    const said = failure.safeParse(error).data?.stderr.trim().split('\n').at(-1) ?? '';
    const why = signal.aborted ? 'the start was stopped; the next one goes on where it ended' : said;
    throw deployErrors.notFetched({ model: id, why: why === '' ? 'its files could not be asked for' : why });
  }
}
