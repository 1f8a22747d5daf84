// The collector as a process.
import { run } from '@backtalk/kit';
import { collectorSettings } from './config.js';
import { createCollector } from './service.js';

await run({
  name: 'collector',
  config: collectorSettings,
  create: (config, { fail }) => createCollector(config, { fail }),
});
