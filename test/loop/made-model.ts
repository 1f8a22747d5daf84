// Models made on the spot: random weights in the shape of an architecture, with a chat template after the format that its makers
// document. Random weights call no tools, so that what they say can be given to them.
// In: an architecture, a context, answers. Out: a folder with the model, and what a test machine needs to serve it.
import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readBaseModel, type BaseModel, type ProcessSpec } from '@backtalk/deploy';
import { TemporaryDirectory } from '@backtalk/kit/testing';
import { z } from 'zod';
import { root, type TestMachine } from './machine.js';

const worker = join(root, 'services', 'worker');
const python = join(root, '.venv', 'bin', 'python');
const makingMs = 300_000;

/** One of each kind: what takes long is to import what makes them. They stay as long as this process. */
let kinds: TemporaryDirectory | undefined;

function makeKinds(): TemporaryDirectory {
  const directory = new TemporaryDirectory('kinds');
  const env = { PYTHONPATH: join(worker, 'src'), PATH: '/usr/bin:/bin' };
  const maker = join(worker, 'tests', 'model', 'made.py');
  execFileSync(python, [maker, directory.path], { timeout: makingMs, env, stdio: 'ignore' });
  return directory;
}

function setContext(folder: string, context: number): void {
  const file = join(folder, 'config.json');
  const config = JSON.parse(readFileSync(file, 'utf8')) as object;
  writeFileSync(file, JSON.stringify({ ...config, max_position_embeddings: context }));
}

/** What stands last in a prompt, and what is answered then. */
export type GivenAnswer = readonly [words: string, answer: string];

export class MadeModel {
  readonly name: string;
  readonly folder: string;
  private readonly made = mkdtempSync(join(tmpdir(), 'backtalk-made-'));

  constructor(kind: string, context: number) {
    this.name = `tiny-${kind}`;
    this.folder = join(this.made, this.name);
    kinds ??= makeKinds();
    cpSync(kinds.join(this.name), this.folder, { recursive: true });
    setContext(this.folder, context);
  }

  base(): BaseModel {
    return readBaseModel(this.folder, { freeBytes: 64e9 });
  }

  /** Adapts the engine so that it says what is given; its logprobs are the model's own, as a training worker computes them. */
  saying(answers: readonly GivenAnswer[]): (spec: ProcessSpec) => ProcessSpec {
    const file = join(this.made, 'answers.json');
    writeFileSync(file, JSON.stringify(answers));
    return (spec) => {
      if (spec.name !== 'engine') return spec;
      const env = {
        ...spec.env,
        PYTHONPATH: join(worker, 'src'),
        BACKTALK_ENGINE_LOGPROBS_MODE: 'raw_logprobs',
      };
      const args = [join(worker, 'tests', 'engine', 'speaking.py'), file, ...spec.args.slice(2)];
      return { ...spec, env, args };
    };
  }

  /** Ids of a request, as the engine renders them for training. */
  async rendered(
    machine: TestMachine,
    request: { readonly messages: unknown; readonly tools?: unknown; readonly chat_template_kwargs?: unknown },
  ): Promise<number[]> {
    const { engineKey } = z
      .object({ engineKey: z.string() })
      .parse(JSON.parse(readFileSync(machine.data.connection, 'utf8')));
    const response = await fetch(`${machine.engine}/tokenize`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${engineKey}` },
      body: JSON.stringify({ model: this.name, ...request, add_generation_prompt: true }),
      signal: AbortSignal.timeout(makingMs),
    });
    return z.object({ tokens: z.array(z.int()) }).parse(await response.json()).tokens;
  }

  remove(): void {
    rmSync(this.made, { recursive: true, force: true });
  }
}
