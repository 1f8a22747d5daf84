// The loader as a process.
import { run } from '@backtalk/kit';
import { loaderSettings } from './config.js';
import { createLoader } from './service.js';

await run({ name: 'loader', config: loaderSettings, create: (config, { fail }) => createLoader(config, { fail }) });
