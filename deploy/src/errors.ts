// Every refusal of the supervisor, in the words that the person reads.
import { defineErrors } from '@backtalk/kit';

export const deployErrors = defineErrors('deploy', {
  notReady: {
    code: 'process_not_ready',
    retry: 'never',
    message: (p: { name: string; log: string; seconds: number }) =>
      `${p.name} did not come up within ${String(p.seconds)} s. Its log says why: ${p.log}`,
  },
  endsAtOnce: {
    code: 'process_ends_at_once',
    retry: 'never',
    message: (p: { name: string; log: string; lastWords: string }) =>
      `${p.name} ends as often as it is started: ${p.lastWords === '' ? 'it says nothing' : p.lastWords} (all of it: ${p.log})`,
  },
  portBusy: {
    code: 'port_busy',
    retry: 'never',
    message: (p: { name: string; port: number; endpoint: number }) =>
      `Port ${String(p.port)} (${p.name}) is in use. Stop what uses it, or start with other ports: npm start -- --port ${String(p.endpoint + 1000)}`,
  },
  badOption: {
    code: 'bad_option',
    retry: 'never',
    message: (p: { option: string; value: string; wanted: string }) => `--${p.option} '${p.value}' is not ${p.wanted}.`,
  },
  noFolderThere: {
    code: 'no_folder_there',
    retry: 'never',
    message: (p: { folder: string }) => `--data ${p.folder} is no place for a folder: name one on a disk.`,
  },
  noDataFolder: {
    code: 'no_data_folder',
    retry: 'never',
    message: (p: { folder: string }) =>
      `${p.folder} is no data folder of Backtalk, or holds files of others. Nothing was deleted.`,
  },
  notNew: {
    code: 'data_folder_in_use',
    retry: 'never',
    message: (p: { folder: string }) => `${p.folder} has been used: restore into a new folder, with --data DIR.`,
  },
  restoreCutOff: {
    code: 'restore_cut_off',
    retry: 'never',
    message: (p: { folder: string; copy: string }) =>
      `The restore of ${p.copy} into ${p.folder} was cut off: start again with --restore ${p.copy}, or empty the folder with npm run reset.`,
  },
  otherCopy: {
    code: 'other_copy',
    retry: 'never',
    message: (p: { copy: string; found: string; here: string; flag: string }) =>
      `What the copy in ${p.copy} has learned belongs to ${p.found}, and this start has ${p.here}: start ${p.flag}.`,
  },
  otherBase: {
    code: 'other_base_model',
    retry: 'never',
    message: (p: { folder: string; found: string; base: string }) =>
      `What ${p.folder} has learned belongs to the model ${p.found}, and this start serves ${p.base}: start with --data NEW, or forget it with npm run reset.`,
  },
  changedBase: {
    code: 'base_model_changed',
    retry: 'never',
    message: (p: { folder: string; base: string; model: string }) =>
      `The weights of ${p.base} in ${p.model} are not those that ${p.folder} has learned on: put them back, start with --data NEW, or forget what was learned with npm run reset.`,
  },
  otherQuantization: {
    code: 'other_quantization',
    retry: 'never',
    message: (p: { folder: string; found: string; quantization: string }) =>
      `What ${p.folder} has learned belongs to a base with --quantization ${p.found}, and this start has ${p.quantization}: leave the option out, start with --data NEW, or forget what was learned with npm run reset.`,
  },
  quantizationRefused: {
    code: 'quantization_refused',
    retry: 'never',
    message: (p: { why: string }) => `--quantization nf4 cannot be had: ${p.why}.`,
  },
  modelRefused: {
    code: 'model_refused',
    retry: 'never',
    message: (p: { folder: string; why: string }) => `The model in ${p.folder} cannot be served: ${p.why}.`,
  },
  teacherRefused: {
    code: 'teacher_refused',
    retry: 'never',
    message: (p: { folder: string; why: string }) => `--teacher ${p.folder} cannot teach: ${p.why}.`,
  },
  noTeacher: {
    code: 'teacher_unnamed',
    retry: 'never',
    message: () =>
      `BACKTALK_RECIPE_SET has teacher=other, and no model was named: npm start -- --teacher DIR names it.`,
  },
  notFetched: {
    code: 'model_not_fetched',
    retry: 'never',
    message: (p: { model: string; why: string }) => `The model ${p.model} cannot be fetched: ${p.why}.`,
  },
  apiRefused: {
    code: 'api_refused',
    retry: 'never',
    message: (p: { option: string; url: string; task: string; why: string }) =>
      `--${p.option} ${p.url} cannot ${p.task}: ${p.why}.`,
  },
  keyFileRefused: {
    code: 'key_file_refused',
    retry: 'never',
    message: (p: { option: string; file: string; why: string }) => `--${p.option} ${p.file} ${p.why}.`,
  },
  notInstalled: {
    code: 'engine_not_installed',
    retry: 'never',
    message: () => `--engine vllm: vLLM is not installed; npm start -- setup --with vllm installs it.`,
  },
  boxRefused: {
    code: 'gpu_profile_refused',
    retry: 'never',
    message: (p: { why: string }) => `--profile gpu: ${p.why}.`,
  },
  noCuda: {
    code: 'no_cuda',
    retry: 'never',
    message: (p: { why: string }) => `--device cuda cannot be used: ${p.why}.`,
  },
  running: {
    code: 'already_running',
    retry: 'never',
    message: (p: { folder: string; pid: number }) =>
      `Backtalk runs on ${p.folder} already (process ${String(p.pid)}): stop it with Ctrl-C first.`,
  },
  needsKeys: {
    code: 'keys_needed',
    retry: 'never',
    message: (p: { host: string; file: string }) =>
      `--host ${p.host} opens the endpoint to other machines, and there is no key in ${p.file}: start without --host, make one with npx backtalk keys add, and start again (docs/operating.md, "Keys").`,
  },
});
