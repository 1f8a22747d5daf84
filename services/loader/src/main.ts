// Runs the loader: reads the environment, starts, waits.
import { run } from '@backtalk/kit';
import { loaderSettings } from './config.js';
import { createLoader } from './service.js';

await run({ name: 'loader', config: loaderSettings, create: (config) => createLoader(config) });
