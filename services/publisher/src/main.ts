// The publisher as a process.
import { runProcess } from '@backtalk/kit/process';

await runProcess(async () => {
  const [{ publisherSettings }, { createPublisher }] = await Promise.all([
    import('./config.js'),
    import('./service.js'),
  ]);
  return {
    name: 'publisher',
    config: publisherSettings,
    create: (config, { fail }) => createPublisher(config, { fail }),
  };
});
