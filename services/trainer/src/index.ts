// What tests of the whole loop start and look at.
export { trainerSettings, type TrainerConfig } from './config.js';
export { trainerErrors } from './errors.js';
export { createTrainer, type Trainer, type TrainerOverrides } from './service.js';
