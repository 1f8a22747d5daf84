// Whether what was learned goes on with what a start chose. In: the data folder, the copy that is put into it, and the base's name,
// policies and quantization. Out: nothing, or one line that says what to do. Asked before anything is fetched or started.
import { readManifest, type Manifest } from '@backtalk/kit';
import { refuseOtherBase } from './connection.js';
import type { DataFolder } from './data-folder.js';
import { deployErrors } from './errors.js';
import { baseModel as laptops } from './machine.js';
import { refuseOtherQuantization } from './quantization.js';
import { refuseCutOff, refuseUsed } from './restored-files.js';

type Chosen = NonNullable<Manifest['served']>;

/** @param copy what the start is to go on from; undefined: what the folder holds */
export function refuseOthersLearning(data: DataFolder, copy: string | undefined, chosen: Chosen): void {
  if (copy === undefined) refuseCutOff(data);
  else refuseUsed(data);
  refuseOtherBase(data, chosen.baseModel);
  refuseOtherQuantization(data, chosen.quantization);
  if (copy !== undefined) refuseOtherCopy(copy, chosen);
}

function refuseOtherCopy(copy: string, { baseModel, policies, quantization }: Chosen): void {
  const { served } = readManifest(copy);
  // A copy of a cluster, or of an earlier release.
  if (served === undefined) return;
  const refused = (found: string, here: string, flag: string) => deployErrors.otherCopy({ copy, found, here, flag });
  if (served.baseModel !== baseModel) {
    const flag = served.baseModel === laptops ? 'without --model' : 'with --model and its folder, or its id at the hub';
    throw refused(`the model ${served.baseModel}`, baseModel, flag);
  }
  if (!served.policies.every((name) => policies.includes(name)))
    throw refused(
      `the policies ${served.policies.join(', ')}`,
      policies.join(', '),
      `with --policies ${served.policies.join(',')}`,
    );
  if (served.quantization !== quantization) {
    const flag = `--quantization ${served.quantization}`;
    throw refused(`a base with ${flag}`, quantization, `with ${flag}`);
  }
}
