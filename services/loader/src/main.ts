// The loader as a process.
import { runProcess } from '@backtalk/kit/process';

await runProcess(async () => {
  const [{ loaderSettings }, { createLoader }] = await Promise.all([import('./config.js'), import('./service.js')]);
  return {
    name: 'loader',
    config: loaderSettings,
    create: (config, { fail }) => createLoader(config, { fail }),
  };
});
