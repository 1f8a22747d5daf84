// What tests and tools of test/ need from here: the same processes that `npm start` runs, and how flags name a model.
export { checkTemplate, readBaseModel, type BaseModel } from './base-model.js';
export { Child, type ProcessSpec } from './child.js';
export { chosenModels } from './chosen-models.js';
export { adapterRank } from './engine-process.js';
export { readOptions } from './options.js';
export * as vllmProgram from './vllm-program.js';
export { openDataFolder, type DataFolder } from './data-folder.js';
export { baseModel, policy, type Machine } from './machine.js';
export { machineProcesses, valkeyUrl } from './processes.js';
export { busyPorts, portsFrom, refusedPort, type Ports } from './ports.js';
export { answersOk } from './readiness.js';
export { keyIn, modelNamed, modelsAt, wantedOfUrl, type ModelFlags } from './remote-api.js';
export { loadSecrets, type Secrets } from './secrets.js';
export { Supervisor } from './supervisor.js';
export { createTerminal, type Terminal } from './terminal.js';
export { askTorch, deviceFlag, trainingDevice, type DeviceFlag, type TrainingDevice } from './training-device.js';
export { launch, type Launched, type LaunchOptions } from './launch.js';
