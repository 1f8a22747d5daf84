// The unit tests of every workspace in one run. The tests of the whole loop have a run of their own: see test/run.mjs.
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const temporaryFolder = fileURLToPath(new URL('test/run/temporary-folder.mjs', import.meta.url));

/** Of every workspace's own tests. What is right is given the time that a slow, busy machine takes for it. */
export const unitTests = defineConfig({
  // Modules are loaded once for all files of a worker, in a quarter of the time: no test changes what another one loads.
  test: {
    include: ['src/**/*.test.ts'],
    globalSetup: temporaryFolder,
    isolate: false,
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});

export default defineConfig({
  test: {
    // Many of them wait, for a broker or a process: left to itself, Vitest takes one worker on two cores.
    maxWorkers: 3,
    projects: [
      'services/*/vitest.config.ts',
      'services/lib/*/vitest.config.ts',
      'deploy/vitest.config.ts',
      'deploy/dashboards/vitest.config.ts',
    ],
  },
});
