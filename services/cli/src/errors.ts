// Everything that a command can refuse, in the words that the person reads; the code decides the exit status.
import { defineErrors, type BacktalkError } from '@backtalk/kit';

export const cliErrors = defineErrors('cli', {
  notRunning: {
    code: 'not_running',
    retry: 'never',
    message: (p: { where: string }) =>
      `Backtalk does not run here (${p.where}). Start it with: npm start — or name its folder: --data DIR`,
  },
  adminNeeded: {
    code: 'admin_needed',
    retry: 'never',
    message: (p: { user: string }) =>
      `Only the broker's user admin may do this, and ${p.user} is not: set BACKTALK_NATS_URL, BACKTALK_NATS_USER=admin and BACKTALK_NATS_PASSWORD.`,
  },
  copiesNeeded: {
    code: 'copies_needed',
    retry: 'never',
    message: () =>
      'BACKTALK_PROFILE is production and BACKTALK_STREAM_REPLICAS is 1: set it to 3, on a broker of three servers.',
  },
  badArgument: {
    code: 'bad_argument',
    retry: 'never',
    message: (p: { name: string; value: string; wanted: string }) => `${p.name} '${p.value}' is not ${p.wanted}.`,
  },
  refused: {
    code: 'refused',
    retry: 'never',
    /** `afterMs`: how long the endpoint wants to be left alone. */
    message: (p: { what: string; status: number; why: string; afterMs?: number | undefined }) =>
      `${p.what} was refused (${String(p.status)}): ${p.why}${p.status === 401 ? ' These commands ask with the key in BACKTALK_API_KEY.' : ''}`,
  },
  brokenOff: {
    code: 'answer_broken_off',
    retry: 'never',
    message: (p: { why: string }) => `The answer broke off: ${p.why}`,
  },
  unreachable: {
    code: 'unreachable',
    retry: 'never',
    message: (p: { what: string; url: string }) =>
      `${p.what} does not answer at ${p.url}. Is Backtalk running? (npx backtalk doctor)`,
  },
  checkoutNeeded: {
    code: 'checkout_needed',
    retry: 'never',
    message: (p: { what: string }) =>
      `${p.what} is a tool of Backtalk's checkout (test/), and this installation has none that is built: run it where the sources are, after npm run build.`,
  },
  setRefused: {
    code: 'set_refused',
    retry: 'never',
    message: (p: { file: string; why: string }) => `${p.file} cannot be measured on. ${p.why}`,
  },
  measureFailed: {
    code: 'measure_failed',
    retry: 'never',
    message: (p: { why: string }) => `The judge could not be measured: ${p.why}.`,
  },
  batchEnded: {
    code: 'batch_ended',
    retry: 'never',
    message: (p: { policy: string; number: number; state: string }) =>
      `Batch ${String(p.number)} of ${p.policy} is ${p.state}: there is nothing to give up.`,
  },
  confirmationNeeded: {
    code: 'confirmation_needed',
    retry: 'never',
    message: () => 'Nothing was changed: answer y, or say --yes.',
  },
  abandonPending: {
    code: 'abandon_pending',
    retry: 'later',
    message: (p: { policy: string; number: number }) =>
      `The trainer has not given up batch ${String(p.number)} of ${p.policy} yet: it will as soon as it runs (npx backtalk status, npx backtalk batches).`,
  },
  rebuildPending: {
    code: 'rebuild_pending',
    retry: 'later',
    message: (p: { version: string }) =>
      `${p.version} is not made again yet: the trainer does it between batches, and goes on without this command (npx backtalk status).`,
  },
  rebuildFailed: {
    code: 'rebuild_failed',
    retry: 'never',
    message: (p: { version: string; why: string }) => `${p.version} could not be made again. ${p.why}`,
  },
  rebuildDiffers: {
    code: 'rebuild_differs',
    retry: 'never',
    message: (p: { version: string; files: string }) =>
      `${p.version} came out otherwise than it was (${p.files}): other software, another processor or a GPU computes in another order.`,
  },
  replayPending: {
    code: 'replay_pending',
    retry: 'later',
    message: (p: { from: string; to: string }) =>
      `${p.from} to ${p.to} are not taken again yet: the trainer does it between batches, and goes on without this command (npx backtalk status).`,
  },
  /** Of one attempt. */
  environmentBroke: {
    code: 'environment_broke',
    retry: 'never',
    message: (p: { why: string }) => p.why,
  },
  environmentFailed: {
    code: 'environment_failed',
    retry: 'never',
    message: (p: { task: number; why: string }) => `No attempt at task ${p.task} came to a score. ${p.why}`,
  },
  rejudgingPending: {
    code: 'rejudging_pending',
    retry: 'later',
    message: (p: { from: string; to: string; asked: string; done: number; of: number }) =>
      `${p.done} of ${p.of} turns of ${p.from} to ${p.to} are judged again: what people wait for goes first. The judge goes on where it is up (npx backtalk status): --judge ${p.asked} takes it up again.`,
  },
  replayFailed: {
    code: 'replay_failed',
    retry: 'never',
    message: (p: { from: string; to: string; why: string }) =>
      `${p.from} to ${p.to} could not be taken again. ${p.why}`,
  },
  hashSecretNeeded: {
    code: 'hash_secret_needed',
    retry: 'never',
    message: () =>
      'The log names tenants and users by keyed hashes: set BACKTALK_HASH_SECRET to what the gateways have (or, to trim, go by age alone).',
  },
  keysInSecret: {
    code: 'keys_in_secret',
    retry: 'never',
    message: (p: { secret: string }) =>
      `The gateway reads its keys from the Secret ${p.secret}: edit keys.json there (kubectl edit secret ${p.secret}; it is looked at every few seconds), or install with gateway.keys.source=bucket.`,
  },
  keysDamaged: {
    code: 'keys_damaged',
    retry: 'never',
    message: (p: { file: string }) =>
      `${p.file} cannot be read as keys: mend it, or move it away and make new ones (npx backtalk keys add).`,
  },
  keysBusy: {
    code: 'keys_busy',
    retry: 'later',
    message: (p: { file: string }) =>
      `Another command is changing the keys. If none is, one was cut off: remove ${p.file}, and ask again.`,
  },
  mergeFailed: {
    code: 'merge_failed',
    retry: 'never',
    message: (p: { why: string }) => `The version could not be merged into its base model: ${p.why}.`,
  },
  notReckoned: {
    code: 'not_reckoned',
    retry: 'never',
    message: (p: { model: string; why: string }) => `${p.model} cannot be reckoned with: ${p.why}.`,
  },
  undoPending: {
    code: 'undo_pending',
    retry: 'later',
    message: (p: { why: string; lesson: string }) =>
      `The lesson is retired, and ${p.why} (npx backtalk status). Ask again later: npx backtalk undo ${p.lesson}`,
  },
  forgetPending: {
    code: 'forget_pending',
    retry: 'later',
    message: (p: { why: string }) =>
      `What was deleted is gone, and ${p.why} (npx backtalk status). The same command goes on from there.`,
  },
  signingKeyNeeded: {
    code: 'signing_key_needed',
    retry: 'never',
    message: () => 'The receipt is signed: name a key with --key FILE (openssl genpkey -algorithm ed25519 -out FILE).',
  },
  receiptForged: {
    code: 'receipt_forged',
    retry: 'never',
    message: (p: { file: string }) => `${p.file} is not as it was signed: something of it was changed since.`,
  },
  pathRefused: {
    code: 'path_refused',
    retry: 'never',
    message: (p: { path: string; why: string }) => `${p.path} ${p.why}.`,
  },
  nothingFound: {
    code: 'nothing_found',
    retry: 'never',
    message: (p: { what: string }) => `There is no ${p.what}.`,
  },
});

const wrongUse: ReadonlySet<string> = new Set([
  'bad_argument',
  'confirmation_needed',
  'hash_secret_needed',
  'signing_key_needed',
  'config_invalid',
  'admin_needed',
  'copies_needed',
  'checkout_needed',
  'not_reckoned',
  'path_refused',
]);

/** What the file system says of a path, in words. Undefined: the error is of something else. */
export function pathRefusal(error: unknown): BacktalkError | undefined {
  if (!(error instanceof Error)) return undefined;
  const { code = '', path, syscall }: NodeJS.ErrnoException = error;
  const why = syscall === 'mkdir' ? (folderWords[code] ?? pathWords[code]) : pathWords[code];
  return why === undefined || path === undefined ? undefined : cliErrors.pathRefused({ path, why }, error);
}

const pathWords: Readonly<Record<string, string>> = {
  EACCES: 'may not be used by this user',
  EEXIST: 'is there already',
  EISDIR: 'is a folder, where a file is needed',
  ENOENT: 'is not there',
  ENOSPC: 'cannot be written: the disk is full',
  ENOTDIR: 'is not a folder',
  EPERM: 'may not be used by this user',
  EROFS: 'cannot be written: its file system is read-only',
};

/** Of a folder that was to be made. */
const folderWords: Readonly<Record<string, string>> = {
  EEXIST: 'is a file, where a folder is needed: name another',
  ENOENT: 'cannot be made, for its place holds no new folders: name another',
};

/** 0 done · 1 failed · 2 wrong use · 3 Backtalk does not run. */
export function exitStatusOf(code: string): number {
  if (wrongUse.has(code)) return 2;
  return code === 'not_running' || code === 'unreachable' ? 3 : 1;
}
