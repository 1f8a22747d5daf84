export { backOffMs, type BackOff } from './back-off.js';
export { Lifecycle } from './lifecycle.js';
export { run, type RunContext, type RunOptions, type Service } from './run.js';
