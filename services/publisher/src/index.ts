/**
 * The publisher as a library, for tests of the loop.
 */
export { publisherSettings, type PublisherConfig } from './config.js';
export { createPublisher, type Publisher, type PublisherOverrides } from './service.js';
