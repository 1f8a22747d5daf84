export { grpcClient, type GrpcCallOptions, type GrpcClient } from './client.js';
export { serveGrpc, type GrpcCallFacts, type GrpcServer, type GrpcService, type ServeGrpcOptions } from './server.js';
export { grpcErrors } from './grpc-errors.js';
