// Which faults are tried on which installation, and which are not tried at all.
import type { Fault, Unmade } from './fault.js';
import { presenceFaults } from './faults/presence.js';
import { startScene, type Scene } from './scene.js';

export interface SceneOfFaults {
  readonly name: string;
  readonly start: () => Promise<Scene>;
  readonly faults: readonly Fault[];
}

export const scenes: readonly SceneOfFaults[] = [
  {
    name: 'stand-ins for models',
    start: () =>
      startScene({
        pace: { tokenMs: 20, answerTokens: 16 },
        environment: { trainer: { BACKTALK_RECIPE_SET: 'effective=8,effectiveMin=8' } },
      }),
    faults: [...presenceFaults],
  },
];

export const unmade: readonly Unmade[] = [];
