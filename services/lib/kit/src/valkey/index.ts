export { valkeyErrors } from './errors.js';
export {
  checkValkey,
  connectionOptions,
  connectValkey,
  logValkeyErrors,
  valkeyError,
  type ValkeyConnection,
  type ValkeyOptions,
  type ValkeyRole,
} from './valkey.js';
