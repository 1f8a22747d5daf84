export { backOffMs, Mutex, systemClock, within, type BackOff, type Clock } from './clock.js';
