export { checkInstallation, type InstallationConfig, type Oldest } from './check-installation.js';
export { installationErrors } from './errors.js';
export { isOlder } from './version-order.js';
