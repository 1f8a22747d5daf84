export { setting } from './setting.js';
export { type Address } from './kinds.js';
export { type Reader, type SettingOptions } from './reader.js';
export { describeConfig, readConfig, type ConfigOf, type Environment, type Shape } from './read-config.js';
export { baseSettings, logLevels, type LogLevel } from './base-settings.js';
export { inheritedEnvironment } from './inherited-environment.js';
