import { holdEngineContract } from './engine-contract.js';
import { startBuiltin } from './engines.js';

holdEngineContract('the built-in engine', startBuiltin);
