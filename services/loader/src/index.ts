/**
 * The loader as a library, for tests of the loop.
 */
export { loaderSettings, type LoaderConfig } from './config.js';
export { createLoader, type Loader, type LoaderOverrides } from './service.js';
