/**
 * Runs the loader: reads the environment, starts, waits.
 */
import { run } from '@backtalk/kit';
import { loaderConfig } from './config.js';
import { createLoader } from './service.js';

await run({ name: 'loader', config: loaderConfig, create: (config) => createLoader(config) });
