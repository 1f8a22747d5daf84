// What commands read from the environment.

import { setting } from '@backtalk/kit';

export const cliSettings = {
  apiKey: setting.string('BACKTALK_API_KEY', {
    description: 'Key for the endpoint; none is needed on a loopback address without keys.',
    default: 'none',
    secret: true,
  }),
  data: setting.path('BACKTALK_DATA', { description: 'Folder of the running machine.', default: '.backtalk' }),
  venv: setting.path('BACKTALK_VENV', {
    description: "Backtalk's virtual environment, for the scorer.",
    default: '.venv',
  }),
};
