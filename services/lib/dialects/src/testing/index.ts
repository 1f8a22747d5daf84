// Fakes of engines, for tests.
export { startFakeEngine, type FakeEngine, type FakeEngineOptions } from './fake-engine.js';
export type { FakeCounts, FakeFaults, FakeSettings } from './fake-settings.js';
export { putFakeVersion, type FakeVersion, type FakeVersionOptions } from './fake-version.js';
export { fakeLogprobs, templateIds as fakePromptIds, type FakeToken } from './fake-tokens.js';
