import { run } from '@backtalk/kit';
import { judgeSettings } from './config.js';
import { createJudge } from './service.js';

await run({
  name: 'judge',
  config: judgeSettings,
  create: (config, { fail }) => createJudge(config, { fail }),
});
