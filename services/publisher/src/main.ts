// Runs the publisher: reads the environment, starts, waits.
import { run } from '@backtalk/kit';
import { publisherSettings } from './config.js';
import { createPublisher } from './service.js';

await run({
  name: 'publisher',
  config: publisherSettings,
  create: (config, context) => createPublisher(config, { onFatal: context.fail }),
});
