// The collector as a process.
import { runProcess } from '@backtalk/kit/process';

await runProcess(async () => {
  const [{ collectorSettings }, { createCollector }] = await Promise.all([
    import('./config.js'),
    import('./service.js'),
  ]);
  return {
    name: 'collector',
    config: collectorSettings,
    create: (config, { fail }) => createCollector(config, { fail }),
  };
});
