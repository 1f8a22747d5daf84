export { backOffMs, type BackOff } from './back-off.js';
export { systemClock, type Clock } from './clock.js';
export { Mutex } from './mutex.js';
export { within } from './within.js';
