export { Lifecycle } from './lifecycle.js';
export { run, type RunContext, type RunOptions, type Service } from './run.js';
export {
  createService,
  serviceLease,
  type ServiceConfig,
  type ServiceContext,
  type ServiceOverrides,
  type ServiceWithPorts,
} from './service.js';
