// The publisher as a process.
import { run } from '@backtalk/kit';
import { publisherSettings } from './config.js';
import { createPublisher } from './service.js';

await run({
  name: 'publisher',
  config: publisherSettings,
  create: (config, { fail }) => createPublisher(config, { fail }),
});
