// The gateway as a process.
import { runProcess } from '@backtalk/kit/process';

await runProcess(async () => {
  const [{ gatewaySettings }, { createGateway }] = await Promise.all([import('./config.js'), import('./service.js')]);
  return {
    name: 'gateway',
    config: gatewaySettings,
    create: (config, { fail }) => createGateway(config, { fail }),
  };
});
