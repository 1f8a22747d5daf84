// The trainer as a process.
import { run } from '@backtalk/kit';

import { trainerConfig } from './config.js';
import { createTrainer } from './service.js';

await run({
  name: 'trainer',
  config: trainerConfig,
  create: (config, { fail }) => createTrainer(config, { fail }),
});
