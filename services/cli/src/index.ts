// What the tools of test/ that are commands, too, share with the commands here.
export { endpointClient, type ChatMessage } from './endpoint.js';
export { switchLearning } from './commands/learning.js';
export { createShell, stopSignal, whole, type CommandContext } from './shell.js';
export type { Output } from './output.js';
