// The engine of one machine as a process, and how the other parts reach it. In: the machine, with which engine was chosen. Out: its
// process, several on cards, none where it runs elsewhere; its address, dialect and keys. Starts nothing.
import { join } from 'node:path';
import type { BaseModel } from './base-model.js';
import type { BoxPlan, PlannedEngine } from './box-plan.js';
import type { ProcessSpec } from './child.js';
import { isElsewhere } from './engine-choice.js';
import { baseNameOf, loopback, watchOf, type Machine } from './machine.js';
import { answersOk } from './readiness.js';
import { judgeEnginePort, replicaPorts } from './ports.js';
import {
  toolParserOf,
  vllmArguments,
  vllmArgumentsOnCards,
  vllmCommand,
  vllmEnvironment,
  vllmEnvironmentOnCards,
  vllmOnCards,
} from './vllm-program.js';

/** Of the recipes' presets. */
const ranks: Readonly<Record<string, number>> = { tiny: 8, small: 16, remote: 32 };

interface RankedBy extends Pick<Machine, 'environment'> {
  readonly base?: Pick<BaseModel, 'recipe'> | undefined;
}

/** By a service with Tinker's API. */
export const isTrainedElsewhere = (environment: Machine['environment']): boolean =>
  environment['BACKTALK_TRAINING_BACKEND'] === 'tinker';

/** The recipe's preset where the operator names none; undefined: the trainer's own. */
export const presetOf = ({ base, environment }: RankedBy): string | undefined =>
  isTrainedElsewhere(environment) ? 'remote' : base?.recipe;

/** Rank of the adapters that are trained; what the operator says goes before. */
export function adapterRank({ base, environment }: RankedBy): number {
  const [, said] = /(?:^|,)\s*loraRank=(\d+)/.exec(environment['BACKTALK_RECIPE_SET'] ?? '') ?? [];
  const preset = environment['BACKTALK_RECIPE'] ?? presetOf({ base, environment }) ?? 'tiny';
  return Number(said ?? ranks[preset] ?? Math.max(...Object.values(ranks)));
}

/** What serves, the version before it, a candidate, and old ones that answers still stream from. */
const adaptersOfPolicy = 8;

/** Of the positions in memory, the part of those that are remembered from ended answers: the engine's own default. */
const rememberedShare = 3 / 8;

function engineBounds(base: Machine['base']): Readonly<Record<string, string>> {
  if (base === undefined) return {};
  return {
    BACKTALK_ENGINE_LENGTH_MAX: String(base.contextTokens),
    BACKTALK_ENGINE_KV_TOKENS_MAX: String(base.kvTokens),
    BACKTALK_ENGINE_PREFIX_TOKENS_MAX: String(Math.floor(base.kvTokens * rememberedShare)),
  };
}

export function engineProcesses(machine: Machine, env: Machine['environment']): ProcessSpec[] {
  if (isElsewhere(machine.engine)) return [];
  if (machine.box !== undefined) return enginesOnCards(machine, machine.box, env);
  const own = machine.engine === 'vllm' ? vllm(machine, env) : builtin(machine, env);
  return [engineSpec('engine', machine.ports.engine, own)];
}

function engineSpec(name: string, port: number, own: Program): ProcessSpec {
  const health = `http://${loopback(port)}/health`;
  return { name, ...own, ready: () => answersOk(health), watch: watchOf(health), stopSignal: 'SIGTERM' };
}

function enginesOnCards(machine: Machine, { engines, judge }: BoxPlan, env: Machine['environment']): ProcessSpec[] {
  const { ports, secrets } = machine;
  const serving = engines.map((engine, at) => {
    const { engine: port } = replicaPorts(ports, at);
    return engineSpec(engine.name, port, vllmOf(machine, env, { engine, port, key: secrets.engineKey, adapts: true }));
  });
  if (judge === undefined) return serving;
  const port = judgeEnginePort(ports);
  const own = { engine: judge, port, key: secrets.judgeEngineKey, adapts: false };
  return [...serving, engineSpec(judge.name, port, vllmOf(machine, env, own))];
}

interface EngineOnCards {
  readonly engine: PlannedEngine;
  readonly port: number;
  readonly key: string;
  /** Whether it serves versions. */
  readonly adapts: boolean;
}

/**
 * The laptop's model is read in seconds. Another one, or a teacher, may be a hundred times as large, on a slow disk; in 4 bits its
 * numbers are made anew at each start: on a CPU about fifteen million a second.
 */
export function readyWithinMsOf({ base, teacher, quantization = 'none' }: Loaded): number {
  const isLaptops = base === undefined && teacher === undefined && quantization === 'none';
  return isLaptops ? 90_000 : vllmReadyWithinMs;
}

type Loaded = Pick<Machine, 'base' | 'teacher' | 'quantization'>;

function vllmOf(machine: Machine, env: Machine['environment'], { engine, port, key, adapts }: EngineOnCards): Program {
  const { cards, share, contextTokens: lengthMax, model } = engine;
  const started = { model: model.folder, baseModel: model.name, port, lengthMax, split: cards.length, share };
  return {
    command: vllmOnCards(env),
    args: vllmArgumentsOnCards({ ...started, ...adaptersOf(machine), quantization: machine.quantization }, adapts),
    env: { ...env, ...vllmEnvironmentOnCards(key, cards, adapts) },
    readyWithinMs: vllmReadyWithinMs,
  };
}

const adaptersOf = (machine: Machine) => ({
  rank: adapterRank(machine),
  policies: machine.policies.length,
  toolParser: toolParserOf(machine.answers ?? ''),
});

type Program = Pick<ProcessSpec, 'command' | 'args' | 'env' | 'readyWithinMs'>;

function builtin(machine: Machine, env: Machine['environment']): Program {
  const { root, ports, model, secrets, data, base, policies } = machine;
  return {
    command: join(root, '.venv', 'bin', 'python'),
    args: ['-m', 'backtalk_worker.engine', '--host', '127.0.0.1', '--port', String(ports.engine)],
    env: {
      ...env,
      BACKTALK_ENGINE_MODEL_DIR: model,
      BACKTALK_ENGINE_MODEL_NAME: baseNameOf(machine),
      ...engineBounds(base),
      BACKTALK_ENGINE_QUANTIZATION: machine.quantization ?? 'none',
      BACKTALK_ENGINE_KEY: secrets.engineKey,
      BACKTALK_ENGINE_JUDGE_KEY: secrets.judgeEngineKey,
      BACKTALK_ADAPTER_DIR: data.adapters,
      BACKTALK_ENGINE_ADAPTERS_MAX: String(adaptersOfPolicy * Math.max(policies.length, 2)),
    },
    readyWithinMs: readyWithinMsOf(machine),
  };
}

function vllm(machine: Machine, env: Machine['environment']): Program {
  const { root, ports, model, secrets, base } = machine;
  const started = {
    model,
    baseModel: baseNameOf(machine),
    port: ports.engine,
    lengthMax: base?.contextTokens ?? 0,
    ...adaptersOf(machine),
  };
  return {
    command: vllmCommand(root),
    args: vllmArguments(started),
    env: { ...env, ...vllmEnvironment(secrets.engineKey, base?.kvBytes) },
    readyWithinMs: vllmReadyWithinMs,
  };
}
/** It loads its weights, and compiles. */
export const vllmReadyWithinMs = 900_000;

export interface EngineAccess {
  /** Without /v1. */
  readonly url: string;
  readonly dialect: string;
  readonly key: string;
  /** No other engine than the built-in one tells keys apart. */
  readonly judgeKey: string;
}

export function engineAccess({
  engine = 'builtin',
  ports,
  secrets,
}: Pick<Machine, 'engine' | 'ports' | 'secrets'>): EngineAccess {
  if (isElsewhere(engine)) {
    const { url, dialect, key } = engine;
    return { url: url.replace(/\/(v1\/?)?$/, ''), dialect, key, judgeKey: key };
  }
  const { engineKey: key, judgeEngineKey } = secrets;
  const judgeKey = engine === 'vllm' ? key : judgeEngineKey;
  return { url: `http://${loopback(ports.engine)}`, dialect: 'vllm', key, judgeKey };
}

/** Prompts and the key go to this one and to no other. */
export function engineHosts({ engine }: Machine): Readonly<Record<string, string>> {
  return isElsewhere(engine) ? { BACKTALK_ENGINE_HOSTS: new URL(engine.url).hostname } : {};
}

/** An engine that was started anew may have other flags than when the start looked at it. */
export function rankTrialOf(machine: Machine): Readonly<Record<string, string>> {
  return isElsewhere(machine.engine) ? { BACKTALK_LORA_RANK: String(adapterRank(machine)) } : {};
}

/** The bound for numbers of half the width, which engines on cards compute with; an address does not tell. */
const parityMax = '0.06';

export function gateOf({ engine, box, environment }: Machine): Readonly<Record<string, string>> {
  return isElsewhere(engine) || box !== undefined
    ? { BACKTALK_PARITY_MAX: environment['BACKTALK_PARITY_MAX'] ?? parityMax }
    : {};
}
