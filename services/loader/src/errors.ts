// Why weights are refused, or cannot be loaded now.
//
// The codes are read by the publisher: those with retry `never` burn a version, the others leave this loader out.
import { defineErrors } from '@backtalk/kit';

export const loaderErrors = defineErrors('loader', {
  digestMismatch: {
    code: 'weights_digest_mismatch',
    status: 409,
    retry: 'never',
    message: (p: { version: string; file: string }) =>
      `${p.version}: the bytes of ${p.file} are not those that its digest names.`,
  },
  missing: {
    code: 'weights_missing',
    status: 404,
    retry: 'later',
    message: (p: { version: string; file: string }) => `${p.version}: ${p.file} is not in the blob store.`,
  },
  truncated: {
    code: 'weights_truncated',
    status: 409,
    retry: 'never',
    message: (p: { version: string; file: string; why: string }) => `${p.version}: ${p.file} is broken, ${p.why}.`,
  },
  shapeMismatch: {
    code: 'weights_shape_mismatch',
    status: 409,
    retry: 'never',
    message: (p: { version: string; why: string }) => `${p.version} does not fit the base model: ${p.why}.`,
  },
  manifestInvalid: {
    code: 'weights_manifest_invalid',
    status: 409,
    retry: 'never',
    message: (p: { version: string; why: string }) => `The manifest of ${p.version} is not valid: ${p.why}.`,
  },
  versionConflict: {
    code: 'weights_version_conflict',
    status: 409,
    retry: 'never',
    message: (p: { version: string }) =>
      `${p.version} is loaded with other weights. A name is never used twice: train a new version.`,
  },
  versionInvalid: {
    code: 'weights_version_invalid',
    status: 400,
    retry: 'never',
    message: (p: { version: string; policy: string }) =>
      `"${p.version}" is no version of policy "${p.policy}": versions are named ${p.policy}-v1, ${p.policy}-v2 and so on.`,
  },
  versionWanted: {
    code: 'weights_version_wanted',
    status: 409,
    retry: 'later',
    message: (p: { version: string }) =>
      `${p.version} stays: it is in the load set, or the load set is not known yet. Ask again when it has left it.`,
  },
  fencePassed: {
    code: 'fence_passed',
    status: 409,
    retry: 'never',
    message: (p: { fence: number; seen: number }) =>
      `Fence ${String(p.fence)} is older than ${String(p.seen)}: another publisher has taken over.`,
  },
  warmUpFailed: {
    code: 'weights_warm_up_failed',
    status: 409,
    retry: 'later',
    message: (p: { version: string; why: string }) =>
      `${p.version} is loaded but does not answer as it must: ${p.why}.`,
  },
  engineNotReady: {
    code: 'engine_not_ready',
    status: 503,
    retry: 'later',
    message: (p: { reason: string }) => `The engine is not ready: ${p.reason}.`,
  },
  policyUnknown: {
    code: 'policy_unknown',
    status: 404,
    retry: 'never',
    message: (p: { policy: string }) => `This loader serves no policy "${p.policy}".`,
  },
  loaderBusy: {
    code: 'loader_busy',
    status: 429,
    retry: 'later',
    message: (p: { waiting: number }) => `${p.waiting} loads and unloads are waiting already.`,
  },
});
