// How single processes of a test's machine differ from those of `npm start`: stand-ins in place of models, and replicas.
// In: process specs. Out: other process specs; starts nothing.

import { join } from 'node:path';
import { answersOk, type DataFolder, type ProcessSpec } from '@backtalk/deploy';
import { freePort } from '@backtalk/kit/testing';

export interface Pace {
  readonly tokenMs: number;
  readonly answerTokens: number;
}

const scripts: Readonly<Record<string, string>> = {
  engine: 'engine-main.js',
  'training-worker': 'training-worker-main.js',
};

/** The same process with a stand-in for its program. */
export function standInFor(
  root: string,
  spec: ProcessSpec,
  pace: Pace = { tokenMs: 2, answerTokens: 12 },
): ProcessSpec {
  const script = join(root, 'test', 'dist', 'loop', 'stand-ins', scripts[spec.name] ?? '');
  const last = spec.args.at(-1) ?? '';
  const args =
    spec.name === 'engine'
      ? ['--port', last, '--token-ms', String(pace.tokenMs), '--answer-tokens', String(pace.answerTokens)]
      : [];
  return {
    ...spec,
    command: process.execPath,
    args: [script, ...args],
    env: { ...spec.env, BACKTALK_GRPC_ADDRESS: last },
  };
}

export interface Replica {
  readonly url: string;
  readonly engine: ProcessSpec;
  readonly loader: ProcessSpec;
}

/** A second engine with a loader of its own, beside those that run. */
export async function replicaOf(specs: ReadonlyMap<string, ProcessSpec>, data: DataFolder): Promise<Replica> {
  const engine = specs.get('engine');
  const loader = specs.get('loader');
  if (engine === undefined || loader === undefined) throw new RangeError('The machine has no engine yet.');
  const ports = [await freePort(), await freePort(), await freePort()].map(String);
  const [enginePort = '', grpcPort = '', healthPort = ''] = ports;
  const url = `http://127.0.0.1:${enginePort}`;
  const portAt = engine.args.indexOf('--port') + 1;
  return {
    url,
    engine: {
      ...engine,
      name: 'engine-2',
      args: engine.args.map((value, at) => (at === portAt ? enginePort : value)),
      ready: () => answersOk(`${url}/health`),
    },
    loader: {
      ...loader,
      name: 'loader-2',
      env: {
        ...loader.env,
        BACKTALK_INSTANCE: 'loader-2',
        BACKTALK_ENGINE_URL: url,
        BACKTALK_GRPC_ADDRESS: `127.0.0.1:${grpcPort}`,
        BACKTALK_HEALTH_ADDRESS: `127.0.0.1:${healthPort}`,
        BACKTALK_ADAPTER_DIR: join(data.path, 'adapters-2'),
      },
      ready: () => answersOk(`http://127.0.0.1:${healthPort}/readyz`),
    },
  };
}
