// What one machine is, to those who say how its processes run: where its state lies, what it serves and with what, and the few
// words that all of them share. Starts nothing.
import type { Quantization } from '@backtalk/kit';
import type { BaseModel } from './base-model.js';
import type { BoxPlan } from './box-plan.js';
import type { ProcessWatch } from './child.js';
import type { DataFolder } from './data-folder.js';
import type { EngineChoice } from './engine-choice.js';
import type { JudgeModel } from './judge-model.js';
import type { Ports } from './ports.js';
import { answersOk } from './readiness.js';
import type { Secrets } from './secrets.js';
import type { TrainingDevice } from './training-device.js';

export interface Machine {
  readonly root: string;
  readonly data: DataFolder;
  readonly ports: Ports;
  readonly host: string;
  readonly secrets: Secrets;
  /** Folder of the base model. */
  readonly model: string;
  /** What follows from a base model that is not the laptop's. */
  readonly base?: Omit<BaseModel, 'folder' | 'parameters' | 'reasons'> | undefined;
  /** What is read out of the model's answers, as its template tells. */
  readonly answers?: string | undefined;
  /** What answers; the built-in engine when left out. */
  readonly engine?: EngineChoice | undefined;
  /** What runs on which card, where vLLM serves on cards. */
  readonly box?: BoxPlan | undefined;
  /** Where steps compute; on the CPU when left out. */
  readonly device?: TrainingDevice['device'] | undefined;
  /** Folder of another model that teaches. */
  readonly teacher?: string | undefined;
  /** Of the base model's linear layers. */
  readonly quantization?: Quantization | undefined;
  /** The model that judges, where flags named one. */
  readonly judge?: Pick<JudgeModel, 'url' | 'model' | 'key'> | undefined;
  /** Votes for each turn, where a launch variable says how many. */
  readonly votes?: number | undefined;
  /** Folder that staged versions are written to, in Hugging Face's layout. */
  readonly checkpoints?: string | undefined;
  /** The policies that are served and trained, each with weights of its own on the one engine. */
  readonly policies: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
}

export const loopback = (port: number) => `127.0.0.1:${String(port)}`;
export const baseModel = 'smollm2-135m-wishes';
/** What is served where no policy is named. */
export const policy = 'backtalk';
export const baseNameOf = ({ base }: Pick<Machine, 'base'>) => base?.name ?? baseModel;

/** A busy process answers late, one that hangs not at all: six missed probes, each with five seconds, are no busy process. */
const probeWithinMs = 5_000;
export const watchOf = (url: string): ProcessWatch => ({
  isWell: () => answersOk(url, probeWithinMs),
  everyMs: probeWithinMs,
  illMaxMs: 6 * probeWithinMs,
});
