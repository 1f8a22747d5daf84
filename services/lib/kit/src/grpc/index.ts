// Calls between services, for those that make or answer them.
export { grpcClient, type GrpcClient } from './client.js';
export { serveGrpc, type GrpcCallFacts, type GrpcServer } from './server.js';
