"""Every way in which the training worker refuses or fails.

Code and retry go to the caller in the trailing metadata `backtalk-code` and `backtalk-retry`, the words as the status
message.
"""

from typing import ClassVar, Literal

from grpc import StatusCode

from backtalk_worker.process.errors import WorkerError


class TrainingWorkerError(WorkerError):
    """A failure that the caller is answered with, as a gRPC status."""

    status: ClassVar[StatusCode]
    retry: ClassVar[Literal["later", "never"]] = "never"


class UnauthenticatedError(TrainingWorkerError):
    """The trainer gave another token than `BACKTALK_TRAINER_TO_TRAINING_TOKEN`, or none; an operator can mend it."""

    code, status, retry = "unauthenticated", StatusCode.UNAUTHENTICATED, "later"
    words = "the trainer has not the secret of these calls: give both the same BACKTALK_TRAINER_TO_TRAINING_TOKEN"


class ForbiddenError(TrainingWorkerError):
    """A part that is not the trainer called."""

    code, status, retry = "caller_forbidden", StatusCode.PERMISSION_DENIED, "later"
    words = "'{}' may not call {}, which is for trainer"


class RequestInvalidError(TrainingWorkerError):
    """The request can't be read or makes no sense."""

    code, status = "request_invalid", StatusCode.INVALID_ARGUMENT


class CallIdReusedError(TrainingWorkerError):
    code, status = "call_id_reused", StatusCode.INVALID_ARGUMENT
    words = "call {} came before with another request: a new step needs a new id"


class BlobMissingError(TrainingWorkerError):
    """A blob that the call needs is not in the cache."""

    code, status, retry = "blob_missing", StatusCode.FAILED_PRECONDITION, "later"
    words = "blob {} is not here: ask Missing, send it with PutBlob, and call again"


class BlobRefusedError(TrainingWorkerError):
    """A blob's bytes are not what its digest says, or it is larger than the cache."""

    code, status = "blob_refused", StatusCode.INVALID_ARGUMENT


class CacheFailedError(TrainingWorkerError):
    """The disk under the cache takes nothing more; an operator can mend it."""

    code, status, retry = "blob_cache_failed", StatusCode.UNAVAILABLE, "later"
    words = "the disk under BACKTALK_BLOB_CACHE_DIR took no blob: {}"


class CacheHeldError(TrainingWorkerError):
    """Another worker keeps its blobs in the folder; this one does not start."""

    code, status = "blob_cache_held", StatusCode.FAILED_PRECONDITION
    words = "another training worker keeps its blobs in {}: give each a BACKTALK_BLOB_CACHE_DIR of its own"


class AdapterInvalidError(TrainingWorkerError):
    """Parent files do not fit the base model or the recipe."""

    code, status = "adapter_invalid", StatusCode.FAILED_PRECONDITION


class TrainingBusyError(TrainingWorkerError):
    code, status, retry = "training_busy", StatusCode.RESOURCE_EXHAUSTED, "later"
    words = "step {} is running, and this worker takes one at a time"


class StepCancelledError(TrainingWorkerError):
    """No caller waits for the step any more, or the worker stops."""

    code, status, retry = "step_cancelled", StatusCode.CANCELLED, "later"
    words = "the step was stopped before its end; nothing of it was kept"


class StepNotFiniteError(TrainingWorkerError):
    """A loss, gradient, weight or divergence is not a number; the same batch would fail again."""

    code, status = "step_not_finite", StatusCode.FAILED_PRECONDITION
    words = "{} is not finite: the step was given up and made no files"


class OutOfMemoryError(TrainingWorkerError):
    """Even the smallest micro-batch does not fit."""

    code, status, retry = "out_of_memory", StatusCode.RESOURCE_EXHAUSTED, "later"
    words = "a micro-batch of {} tokens does not fit into memory"


class GroupLostError(TrainingWorkerError):
    """Of several processes that take steps together one ended or stands still: all of them start anew."""

    code, status, retry = "group_lost", StatusCode.UNAVAILABLE, "later"
    words = "the group of training processes is lost: {}; it starts anew, and the same call can be made again"


class ProcessFailedError(TrainingWorkerError):
    """Another process of the group failed in a way that has no code; its own log has the cause."""

    code, status, retry = "process_failed", StatusCode.INTERNAL, "later"
    words = "another process of the group failed ({})"


class ServiceUnavailableError(TrainingWorkerError):
    """The service that trains elsewhere does not answer, fails, or does not take the key; an operator can mend it."""

    code, status, retry = "service_unavailable", StatusCode.UNAVAILABLE, "later"
    words = "the training service did not do it: {}"


class SdkMissingError(TrainingWorkerError):
    code, status = "sdk_missing", StatusCode.FAILED_PRECONDITION
    words = "the SDK of the training service's API is not installed: node deploy/start.mjs setup --with tinker"


class ServiceRefusedError(TrainingWorkerError):
    """The service that trains elsewhere refuses what it is asked for; it would refuse it again."""

    code, status = "service_refused", StatusCode.FAILED_PRECONDITION
    words = "the training service refuses it: {}"


class RecipeNotHonouredError(TrainingWorkerError):
    """The recipe asks for what the service cannot do; an operator can mend it."""

    code, status, retry = "recipe_not_honoured", StatusCode.FAILED_PRECONDITION, "later"
    words = "a training service cannot honour this recipe: set {}"


class ParentElsewhereError(TrainingWorkerError):
    """What the next step begins with is where the parent was trained, and not here; an operator can mend it."""

    code, status, retry = "parent_elsewhere", StatusCode.FAILED_PRECONDITION, "later"
    words = (
        "the version before was trained by {}, from which this backend cannot go on:"
        " set BACKTALK_TRAINING_BACKEND as it was, or train another policy"
    )


class TeacherMissingError(TrainingWorkerError):
    """The recipe's teacher is `other`, and the worker was given no such model; an operator can mend it."""

    code, status, retry = "teacher_missing", StatusCode.FAILED_PRECONDITION, "later"
    words = (
        "the recipe's teacher is another model, and none was named: set BACKTALK_TEACHER_MODEL_DIR, or its `teacher`"
    )


class TeacherUnsupportedError(TrainingWorkerError):
    """The model that is to teach does not fit the base."""

    code, status = "teacher_unsupported", StatusCode.FAILED_PRECONDITION
    words = "{} cannot teach {}: {}"


class ModelUnsupportedError(TrainingWorkerError):
    """The base model computes its logits in a way that the chunked loss does not follow."""

    code, status = "model_unsupported", StatusCode.FAILED_PRECONDITION
    words = "{} changes its logits after the output layer, which training doesn't follow"
