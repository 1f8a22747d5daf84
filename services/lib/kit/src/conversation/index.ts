export { decodeConversation, type DecodedConversation } from './decode.js';
