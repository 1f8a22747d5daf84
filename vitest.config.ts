// The unit tests of every workspace in one run. The tests of the whole loop have a run of their own: see test/run.mjs.
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    projects: ['services/*/vitest.config.ts', 'services/lib/*/vitest.config.ts', 'deploy/vitest.config.ts'],
  },
});
