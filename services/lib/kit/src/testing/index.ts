export { FakeClock } from './fake-clock.js';
export { freePort } from './free-port.js';
export { startNats, type Credentials, type StartNatsOptions, type TestNats } from './nats-server.js';
export { pythonEnvironment, repositoryRoot } from './python-environment.js';
export { ServerProcess, type ServerPlan } from './server-process.js';
export { silentLogger } from './silent-logger.js';
export { TemporaryDirectory } from './temporary-directory.js';
export { testingErrors, until, type UntilOptions } from './until.js';
export { startValkey, type TestValkey } from './valkey-server.js';
