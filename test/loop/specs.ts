// How single processes of a test's machine differ from those of `npm start`: stand-ins in place of models, and replicas.
// In: process specs. Out: other process specs; starts nothing.
import { join } from 'node:path';
import { answersOk, type DataFolder, type Ports, type ProcessSpec } from '@backtalk/deploy';

export interface Pace {
  readonly tokenMs: number;
  readonly answerTokens: number;
}

/** The same process with a stand-in for its program, on the same ports; a process without a stand-in is an error. */
export function standInFor(
  root: string,
  spec: ProcessSpec,
  { engine, grpc }: Ports,
  pace: Pace = { tokenMs: 2, answerTokens: 12 },
): ProcessSpec {
  const program = (script: string, ...args: string[]) => ({
    command: process.execPath,
    args: [join(root, 'test', 'dist', 'loop', 'stand-ins', script), ...args],
  });
  switch (spec.name) {
    case 'engine': {
      const { tokenMs, answerTokens } = pace;
      const speed = ['--token-ms', String(tokenMs), '--answer-tokens', String(answerTokens)];
      const model = spec.env['BACKTALK_ENGINE_MODEL_NAME'] ?? '';
      return { ...spec, ...program('engine-main.js', '--port', String(engine), '--model', model, ...speed) };
    }
    case 'training-worker': {
      const address = `127.0.0.1:${String(grpc.trainingWorker)}`;
      return { ...spec, ...program('training-worker-main.js'), env: { ...spec.env, BACKTALK_GRPC_ADDRESS: address } };
    }
    default:
      throw new RangeError(`${spec.name} has no stand-in.`);
  }
}

/** Between and behind those of the machine itself: engine, the loader's gRPC, its health. */
export const replicaPorts = [45, 46, 47] as const;
const thirdPorts = [35, 36, 37] as const;

export interface Replica {
  readonly url: string;
  readonly engine: ProcessSpec;
  readonly loader: ProcessSpec;
}

/** A second or third engine with a loader of its own, beside those that run. */
export function replicaOf(
  specs: ReadonlyMap<string, ProcessSpec>,
  data: DataFolder,
  ports: Ports,
  number: 2 | 3,
): Replica {
  const engine = specs.get('engine');
  const loader = specs.get('loader');
  if (engine === undefined || loader === undefined) throw new RangeError('The machine has no engine yet.');
  const offsets = number === 2 ? replicaPorts : thirdPorts;
  const [enginePort = '', grpcPort = '', healthPort = ''] = offsets.map((offset) => String(ports.endpoint + offset));
  const url = `http://127.0.0.1:${enginePort}`;
  const portAt = engine.args.indexOf('--port') + 1;
  return {
    url,
    engine: {
      ...engine,
      name: `engine-${String(number)}`,
      args: engine.args.map((value, at) => (at === portAt ? enginePort : value)),
      ready: () => answersOk(`${url}/health`),
    },
    loader: {
      ...loader,
      name: `loader-${String(number)}`,
      env: {
        ...loader.env,
        BACKTALK_INSTANCE: `loader-${String(number)}`,
        BACKTALK_ENGINE_URL: url,
        BACKTALK_GRPC_ADDRESS: `127.0.0.1:${grpcPort}`,
        BACKTALK_HEALTH_ADDRESS: `127.0.0.1:${healthPort}`,
        BACKTALK_ADAPTER_DIR: join(data.path, `adapters-${String(number)}`),
      },
      ready: () => answersOk(`http://127.0.0.1:${healthPort}/readyz`),
    },
  };
}

/** Behind those of the machine itself: endpoint, gRPC, health. */
export const gatewayPorts = [1, 27, 17] as const;

/** A second gateway of the same installation. */
export function secondGatewayOf(
  specs: ReadonlyMap<string, ProcessSpec>,
  data: DataFolder,
  ports: Ports,
): { readonly url: string; readonly gateway: ProcessSpec } {
  const first = specs.get('gateway');
  if (first === undefined) throw new RangeError('The machine has no gateway yet.');
  const [listen = '', grpc = '', health = ''] = gatewayPorts.map(
    (offset) => `127.0.0.1:${String(ports.endpoint + offset)}`,
  );
  return {
    url: `http://${listen}`,
    gateway: {
      ...first,
      name: 'gateway-2',
      env: {
        ...first.env,
        BACKTALK_INSTANCE: 'gateway-2',
        BACKTALK_LISTEN: listen,
        BACKTALK_GRPC_ADDRESS: grpc,
        BACKTALK_HEALTH_ADDRESS: health,
        BACKTALK_SPOOL_DIR: join(data.path, 'spool-2'),
      },
      ready: () => answersOk(`http://${health}/readyz`),
    },
  };
}
