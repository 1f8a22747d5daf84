export { newId, newSessionId, newTurnId } from './ids.js';
export { keyedHash, sha256Hex } from './hashes.js';
