// What services use of the kit, name by name. Calls between services and Valkey have doors of their own: they take long to load.
export { backUp, restoreBackup } from './backup/backup.js';
export { makeFolder } from './backup/make-folder.js';
export { keptFiles, keptStreams, readManifest, type Manifest } from './backup/manifest.js';
export type { BlobInfo, BlobStore } from './blobs/blob-store.js';
export { folderBlobStore } from './blobs/folder-blob-store.js';
export { dropStrayPieces, openJetStreamBlobStore } from './blobs/jetstream-blob-store.js';
export { openBlobStore, type BlobConfig } from './blobs/open-blob-store.js';
export { connectBroker, type Broker } from './broker/connect.js';
export type { StoredMessage } from './broker/last-of-subject.js';
export { brokerError } from './broker/translate.js';
export { brokerRoom } from './installation/broker-room.js';
export { shellQuoted } from './installation/shell-quoted.js';
export { ensureStreams, type EnsuredStream, type StreamOptions } from './broker/streams.js';
export {
  baseSettings,
  blobSettings,
  installationSettings,
  tracingSettings,
  wireSettings,
  type LogLevel,
} from './config/base-settings.js';
export {
  environmentOf,
  foreignEnvironment,
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
export {
  wireSecurity,
  type CallTokens,
  type TlsFiles,
  type WireConfig,
  type WireSecurity,
} from './config/wire-security.js';
export { clip, oneLine } from './conversation/clip.js';
export { decodeConversation, type DecodedConversation } from './conversation/decode.js';
export { nextStateBounds } from './conversation/next-state-bounds.js';
export {
  isObservation,
  lastHumanMessage,
  personWords,
  templateTokenIn,
  textsIn,
  wordsIn,
} from './conversation/person-words.js';
export {
  asBacktalkError,
  BacktalkError,
  defineErrors,
  isBacktalkError,
  kitErrors,
  type CatalogueRow,
  type ErrorFactories,
  type ErrorSpec,
  type Retry,
} from './errors/backtalk-error.js';
export { consumeFacts, type FactConsumer, type FactPosition } from './facts/consumer.js';
export { deadLetters, type DeadLetter } from './facts/dead-letters.js';
export type { Delivery, FactHandler, Held } from './facts/delivery.js';
export { FactPublisher, type Published } from './facts/publisher.js';
export { deleteFacts, settledSequences, type DeletionOptions } from './facts/delete-facts.js';
export {
  adoptPayloads,
  dropPayload,
  markGoing,
  namedPayloadBytes,
  payloadBytes,
  sweepPayloads,
  type PayloadSweep,
} from './facts/payloads.js';
export { FactReader, type FactHeadersRow, type ReadOptions } from './facts/reader.js';
export type { StoredFact } from './facts/stored-fact.js';
export { Refusals } from './facts/refusals.js';
export { TurnLog, type TurnIds } from './facts/turn-log.js';
export {
  burnedInARow,
  givenUpBy,
  givenUpInARow,
  isHeld,
  type ClosedBatch,
  type Otherwise,
  type VersionFate,
} from './identity/burned-in-a-row.js';
export { keyedHash, madeAtMs, newId, newTurnId, sha256Hex, tenantHash, userHash } from './identity/ids.js';
export {
  baseVersion,
  isBaseVersion,
  isPolicyName,
  versionName,
  versionNumber,
  versionParts,
} from './identity/weights-version.js';
export { baseFilesIn, type BaseFiles } from './installation/base-files.js';
export {
  connectionText,
  readConnectionFile,
  type ConnectionFile,
  type KeptEngine,
  type KeptJudge,
} from './installation/connection-file.js';
export { cappedBytes, folderBytes, modelsFolder } from './installation/data-folder.js';
export { isJsonObject, type JsonObject } from './json/json-object.js';
export { JsonScan, type JsonBounds, type JsonExcess } from './json/json-scan.js';
export { keyGrant, policiesOf, tenantsOf, type KeyGrant } from './kv/key-grant.js';
export { jsonCodec, kvBucket, type KvBucket, type KvChange, type KvCodec, type KvEntry } from './kv/kv-bucket.js';
export { watchEngineLeases } from './kv/engine-leases.js';
export {
  abandonedBatch,
  askedRebuild,
  learningSwitch,
  rebuildProgress,
  storageRoom,
  triedStep,
  type AskedRebuild,
  type LearningSwitch,
  type PolicyDocument,
  type RebuildProgress,
  type Replayed,
  type TriedStep,
} from './kv/policy-documents.js';
export { holdLease, leaseAddresses, watchLeases, type LeaseHold, type LeaseView } from './kv/leases.js';
export { singleton, type Singleton, type SingletonOptions } from './kv/singleton.js';
export { harmlessHints, hintedMessages, withLessons } from './lessons/hinted-messages.js';
export {
  coverOf,
  inForce,
  inScope,
  isInForce,
  isLeftOut,
  isShown,
  personLessonsMax,
  shownMax,
  type Speaker,
} from './lessons/in-force.js';
export { isFirstJudgement } from './lessons/rejudged.js';
export { asWording, ownWish, wholeWords, wordingCharsMax, type OwnWish, type OwnWords } from './lessons/own-wish.js';
export { effectOf, farFrom, lessonProgress, measuresTogether, progressOf, weightsHold } from './lessons/progress.js';
export {
  adapterParameters,
  attentionWidths,
  contextMin,
  modelConfig,
  parametersOf,
  unservable,
  type ModelConfig,
} from './model/model-config.js';
export {
  bytesOfCard,
  engineParts,
  fitOf,
  processBytes,
  servingParts,
  splitsOf,
  sumOf,
  trainingParts,
  usableShare,
  type Fit,
  type Judge,
  type Parts,
  type Wanted,
} from './model/model-fit.js';
export {
  gigabytes,
  memoryShort,
  positionBytes,
  quantizations,
  reasonsOfBounds,
  sampleBytes,
  stepBytes,
  tokenBounds,
  type Bounds,
  type Quantization,
  type Room,
} from './model/model-memory.js';
export { run, type RunContext, type Service } from './service/run.js';
export {
  createService,
  serviceLease,
  type ServiceConfig,
  type ServiceContext,
  type ServiceOverrides,
  type ServiceWithPorts,
} from './service/service.js';
export type { ReadyCheck } from './telemetry/health.js';
export { createLogger, type Logger } from './telemetry/logger.js';
export { Metrics } from './telemetry/metrics.js';
export { idsOf, inSpan, isTracing, startSpan, type Span } from './telemetry/spans.js';
export { newTrace, traceFrom, type Trace } from './telemetry/trace.js';
export {
  backOffMs,
  Mutex,
  MutexByKey,
  systemClock,
  untilAborted,
  within,
  type BackOff,
  type Clock,
} from './time/clock.js';
export { blobStream } from './topology/buckets.js';
export {
  catalogue,
  factNames,
  type FactIds,
  type FactMessage,
  type FactName,
  type FactStream,
} from './topology/catalogue.js';
export { natsConfig } from './topology/nats-config.js';
export { callPairs, calls, pairsOf, tokenVariable, type CallPair } from './topology/calls.js';
export { permissionsOf } from './topology/permissions.js';
export { durableOf, idsOfSubject } from './topology/subjects.js';
export { adminUser, brokerServices, brokerUsers, type BrokerService, type BrokerUser } from './topology/users.js';
