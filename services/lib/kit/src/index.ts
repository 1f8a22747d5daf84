// What services use of the kit, name by name.
export { backUp, keptStreams, restoreBackup } from './backup/backup.js';
export { type Manifest, readManifest } from './backup/manifest.js';
export type { BlobInfo, BlobStore } from './blobs/blob-store.js';
export { blobErrors } from './blobs/errors.js';
export { folderBlobStore } from './blobs/folder-blob-store.js';
export { openJetStreamBlobStore } from './blobs/jetstream-blob-store.js';
export { type BlobConfig, openBlobStore } from './blobs/open-blob-store.js';
export { dropStrayPieces } from './blobs/stray-pieces.js';
export { type Broker, connectBroker } from './broker/connect.js';
export { brokerErrors } from './broker/errors.js';
export type { StoredMessage } from './broker/stored-message.js';
export { checkStreams, type EnsuredStream, ensureStreams, type StreamOptions } from './broker/streams.js';
export {
  baseSettings,
  blobSettings,
  installationSettings,
  type LogLevel,
  tracingSettings,
} from './config/base-settings.js';
export {
  describeConfig,
  inheritedEnvironment,
  readConfig,
  settings,
  shapeOf,
  type ConfigOf,
  type Environment,
  type Settings,
  type Shape,
} from './config/read-config.js';
export { setting, type Address, type BlobPlace, type Reader, type SettingOptions } from './config/setting.js';
export { decodeConversation, type DecodedConversation } from './conversation/decode.js';
export { asBacktalkError } from './errors/as-backtalk-error.js';
export { BacktalkError, isBacktalkError, type Retry } from './errors/backtalk-error.js';
export { defineErrors, type CatalogueRow, type ErrorFactories, type ErrorSpec } from './errors/define-errors.js';
export { kitErrors } from './errors/kit-errors.js';
export { consumeFacts, type FactConsumer, type FactPosition } from './facts/consumer.js';
export { type DeadLetter, deadLetters } from './facts/dead-letters.js';
export type { Delivery, FactHandler, Held } from './facts/delivery.js';
export { factErrors } from './facts/errors.js';
export { FactPublisher, type Published } from './facts/publisher.js';
export { type FactHeadersRow, FactReader, type ReadOptions } from './facts/reader.js';
export type { StoredFact } from './facts/stored-fact.js';
export { type TurnIds, TurnLog } from './facts/turn-log.js';
export { type GrpcClient, grpcClient } from './grpc/client.js';
export { type GrpcCallFacts, type GrpcServer, serveGrpc } from './grpc/server.js';
export { keyedHash, sha256Hex } from './identity/hashes.js';
export { newId, newSessionId, newTurnId } from './identity/ids.js';
export { baseVersion, isBaseVersion, versionName, versionNumber, versionParts } from './identity/weights-version.js';
export { checkInstallation } from './installation/check-installation.js';
export { isJsonObject, type JsonObject } from './json/json-object.js';
export { kvErrors } from './kv/errors.js';
export { jsonCodec } from './kv/json-codec.js';
export { keyGrant, type KeyGrant } from './kv/key-grant.js';
export { type KvBucket, kvBucket, type KvChange, type KvCodec, type KvEntry } from './kv/kv-bucket.js';
export { leaseAddresses } from './kv/lease-addresses.js';
export { holdLease, type LeaseHold, type LeaseView, watchLeases } from './kv/leases.js';
export { type Singleton, singleton, type SingletonOptions } from './kv/singleton.js';
export { Lifecycle } from './service/lifecycle.js';
export { run, type RunContext, type Service } from './service/run.js';
export {
  createService,
  type ServiceConfig,
  type ServiceContext,
  serviceLease,
  type ServiceOverrides,
  type ServiceWithPorts,
} from './service/service.js';
export { Health, type ReadyCheck } from './telemetry/health.js';
export { createLogger, type Logger } from './telemetry/logger.js';
export { Metrics } from './telemetry/metrics.js';
export { idsOf, inSpan, type Span, startSpan } from './telemetry/spans.js';
export { newTrace, type Trace, traceFrom } from './telemetry/trace.js';
export { type BackOff, backOffMs } from './time/back-off.js';
export { type Clock, systemClock } from './time/clock.js';
export { Mutex } from './time/mutex.js';
export { within } from './time/within.js';
export { blobStream } from './topology/buckets.js';
export {
  catalogue,
  type FactIds,
  type FactMessage,
  type FactName,
  factNames,
  type FactStream,
} from './topology/catalogue.js';
export { natsConfig } from './topology/nats-config.js';
export { permissionsOf } from './topology/permissions.js';
export { durableOf } from './topology/subjects.js';
export { adminUser, type BrokerService, brokerServices, type BrokerUser, brokerUsers } from './topology/users.js';
export * from './jobs/index.js';
