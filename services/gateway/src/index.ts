// The gateway as a library, for tests of the loop.
export { gatewaySettings, type GatewayConfig } from './config.js';
export { createGateway, type Gateway, type GatewayOverrides } from './service.js';
