// The gateway as a process.
import { run } from '@backtalk/kit';
import { gatewaySettings } from './config.js';
import { createGateway } from './service.js';

await run({ name: 'gateway', config: gatewaySettings, create: (config, { fail }) => createGateway(config, { fail }) });
