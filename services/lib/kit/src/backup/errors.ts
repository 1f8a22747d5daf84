// Why a backup or a restore is refused or broken off, in words for the operator.
import { defineErrors } from '../errors/define-errors.js';

export const backupErrors = defineErrors('backup', {
  folderTaken: {
    code: 'backup_folder_taken',
    retry: 'never',
    message: (p: { folder: string }) => `${p.folder} holds a backup already: name another folder.`,
  },
  notABackup: {
    code: 'backup_unreadable',
    retry: 'never',
    message: (p: { folder: string; why: string }) => `${p.folder} is not a whole backup: ${p.why}.`,
  },
  notEmpty: {
    code: 'restore_not_empty',
    retry: 'never',
    message: (p: { stream: string }) =>
      `Stream ${p.stream} exists here already: restore into an installation that has never run.`,
  },
  tooBusy: {
    code: 'backup_too_busy',
    retry: 'later',
    message: (p: { tries: number }) =>
      `Batches closed during each of ${String(p.tries)} copies: pause learning (npx backtalk pause) and try again.`,
  },
  snapshotBroken: {
    code: 'snapshot_broken',
    retry: 'later',
    message: (p: { stream: string; why: string }) => `The snapshot of stream ${p.stream} broke off: ${p.why}.`,
  },
});
