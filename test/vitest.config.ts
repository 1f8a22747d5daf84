import { defineConfig } from 'vitest/config';

// Tests of the whole loop start many processes, so that one file runs at a time.
export default defineConfig({
  test: {
    include: ['**/*.test.ts'],
    exclude: ['dist/**', 'node_modules/**'],
    globalSetup: './run/temporary-folder.mjs',
    fileParallelism: false,
    // Modules are loaded once for all files of a worker.
    isolate: false,
    testTimeout: 600_000,
    hookTimeout: 600_000,
  },
});
