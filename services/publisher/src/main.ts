/**
 * Runs the publisher: reads the environment, starts, waits.
 */
import { run } from '@backtalk/kit';
import { publisherConfig } from './config.js';
import { createPublisher } from './service.js';

await run({
  name: 'publisher',
  config: publisherConfig,
  create: (config, context) => createPublisher(config, { onFatal: context.fail }),
});
