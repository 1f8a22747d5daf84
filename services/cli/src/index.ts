// What the tools of test/ that are commands, too, share with the commands here.
export { endpointClient, type ChatMessage } from './official-client.js';
export { switchLearning } from './commands/learning.js';
export { createShell, whole, type CommandContext } from './shell.js';
export { stopSignal } from './stop-signal.js';
export type { Output } from './output.js';
