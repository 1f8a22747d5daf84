// How engines are spoken to: one interface, one implementation for each dialect.
export { EnginePool, type EnginePoolEvents } from './asking/engine-pool.js';
export * from './asking/in-words.js';
export { ResolvedUrls } from './asking/resolved-urls.js';
export * from './capture/accumulator.js';
export * from './capture/capture.js';
export * from './capture/invariants.js';
export * from './chat-fields.js';
export * from './create-engine-client.js';
export * from './deadly-prompts.js';
export * from './engine-client.js';
export { engineErrors, isEngineError, type EngineErrorCode } from './errors.js';
export { JsonText } from './json-text.js';
export { tryAdapter, type TrialAdapter } from './trial-adapter.js';
export { warmUpRequest } from './vllm/capability-probe.js';
