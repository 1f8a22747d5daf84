// What of the kit needs neither broker nor network, for threads: the whole kit takes half a second to load.
export { lastHumanMessage, personWords } from '../conversation/person-words.js';
export { asBacktalkError, defineErrors, type ErrorFacts } from '../errors/backtalk-error.js';
export { keyedHash } from '../identity/ids.js';
export { isJsonObject, type JsonObject } from '../json/json-object.js';
export { JsonScan, type JsonBounds, type JsonExcess } from '../json/json-scan.js';
