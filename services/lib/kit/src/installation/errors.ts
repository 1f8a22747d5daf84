// Why a service refuses to start on an installation.
import { defineErrors } from '../errors/define-errors.js';

export const installationErrors = defineErrors('installation', {
  installationUnfit: {
    code: 'installation_unfit',
    retry: 'stop',
    message: (p: { problems: readonly string[] }) =>
      `BACKTALK_PROFILE is production, and this installation may lose what it was given: ${p.problems.join('; ')}.`,
  },
});
