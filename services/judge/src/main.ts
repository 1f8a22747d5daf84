// The judge as a process.
import { runProcess } from '@backtalk/kit/process';

await runProcess(async () => {
  const [{ judgeSettings }, { createJudge }] = await Promise.all([import('./config.js'), import('./service.js')]);
  return {
    name: 'judge',
    config: judgeSettings,
    create: (config, { fail }) => createJudge(config, { fail }),
  };
});
