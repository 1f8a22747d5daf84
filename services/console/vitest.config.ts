export { unitTests as default } from '../../vitest.config.ts';
