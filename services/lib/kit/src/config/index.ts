export { setting } from './setting.js';
export { type Address, type BlobPlace } from './kinds.js';
export { type Reader, type SettingOptions } from './reader.js';
export { describeConfig, readConfig, type ConfigOf, type Environment, type Shape } from './read-config.js';
export {
  tracingSettings,
  baseSettings,
  blobSettings,
  installationSettings,
  logLevels,
  profiles,
  type LogLevel,
  type Profile,
} from './base-settings.js';
export { inheritedEnvironment } from './inherited-environment.js';
