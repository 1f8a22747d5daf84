export { newId, newSessionId, newTurnId } from './ids.js';
export { keyedHash, sha256Hex } from './hashes.js';
export { baseVersion, isBaseVersion, versionName, versionNumber, versionParts } from './weights-version.js';
