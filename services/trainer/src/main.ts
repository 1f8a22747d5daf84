// The trainer as a process.
import { run } from '@backtalk/kit';

import { trainerSettings } from './config.js';
import { createTrainer } from './service.js';

await run({
  name: 'trainer',
  config: trainerSettings,
  create: (config, { fail }) => createTrainer(config, { fail }),
});
