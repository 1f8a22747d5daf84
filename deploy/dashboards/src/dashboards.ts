// All dashboards, in the order in which an operator reads them.
import { gateway } from './boards/gateway.js';
import { judge } from './boards/judge.js';
import { loop } from './boards/loop.js';
import { pools } from './boards/pools.js';
import { swaps } from './boards/swaps.js';
import { training } from './boards/training.js';
import type { Dashboard } from './spec.js';

export const dashboards: readonly Dashboard[] = [loop, gateway, judge, training, swaps, pools];
