// The one list of all benchmarks, in the order in which they run.
import type { Benchmark } from './benchmark.js';
import { engineStreams } from './engine-streams.js';
import { feedbackToWeights } from './feedback-to-weights.js';
import { firstToken } from './first-token.js';
import { gatewayCost } from './gateway-cost.js';
import { longStep } from './long-step.js';
import { memory } from './memory.js';
import { stepTime } from './step-time.js';
import { swapTime } from './swap-time.js';
import { versionRebuild } from './version-rebuild.js';
import { voteScaling } from './vote-scaling.js';

export const benchmarks: readonly Benchmark[] = [
  gatewayCost,
  firstToken,
  swapTime,
  engineStreams,
  voteScaling,
  stepTime,
  longStep,
  feedbackToWeights,
  memory,
  versionRebuild,
];
