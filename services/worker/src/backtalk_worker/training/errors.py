"""Every way in which the training worker refuses or fails: a code, a gRPC status, whether to try again, and words.

Code and retry go to the caller in the trailing metadata `backtalk-code` and `backtalk-retry`, the words as the status
message. Words name no user text.
"""

from typing import ClassVar, Literal

import grpc

Retry = Literal["later", "never"]


class TrainingWorkerError(Exception):
    """Base of the catalogue; only subclasses are raised."""

    code: ClassVar[str]
    status: ClassVar[grpc.StatusCode]
    retry: ClassVar[Retry]


class RequestInvalidError(TrainingWorkerError):
    """The request can't be read or makes no sense."""

    code = "request_invalid"
    status = grpc.StatusCode.INVALID_ARGUMENT
    retry = "never"


class CallIdReusedError(TrainingWorkerError):
    """One call id came with two different requests."""

    code = "call_id_reused"
    status = grpc.StatusCode.INVALID_ARGUMENT
    retry = "never"

    def __init__(self, call: str) -> None:
        super().__init__(f"call {call} came before with another request: a new step needs a new id")


class BlobMissingError(TrainingWorkerError):
    """A blob that the call needs is not in the cache."""

    code = "blob_missing"
    status = grpc.StatusCode.FAILED_PRECONDITION
    retry = "later"

    def __init__(self, digest: str) -> None:
        super().__init__(f"blob {digest} is not here: ask Missing, send it with PutBlob, and call again")


class BlobRefusedError(TrainingWorkerError):
    """A blob's bytes are not what its digest says, or it is larger than the cache."""

    code = "blob_refused"
    status = grpc.StatusCode.INVALID_ARGUMENT
    retry = "never"


class AdapterInvalidError(TrainingWorkerError):
    """Parent files do not fit the base model or the recipe."""

    code = "adapter_invalid"
    status = grpc.StatusCode.FAILED_PRECONDITION
    retry = "never"


class TrainingBusyError(TrainingWorkerError):
    """Another step is in hand."""

    code = "training_busy"
    status = grpc.StatusCode.RESOURCE_EXHAUSTED
    retry = "later"

    def __init__(self, call: str) -> None:
        super().__init__(f"step {call} is in hand, and this worker takes one at a time")


class StepCancelledError(TrainingWorkerError):
    """Nobody waits for the step any more, or the worker stops."""

    code = "step_cancelled"
    status = grpc.StatusCode.CANCELLED
    retry = "later"

    def __init__(self) -> None:
        super().__init__("the step was stopped before its end; nothing of it was kept")


class StepNotFiniteError(TrainingWorkerError):
    """A loss, gradient, weight or divergence is not a number; the same batch would fail again."""

    code = "step_not_finite"
    status = grpc.StatusCode.FAILED_PRECONDITION
    retry = "never"

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} is not finite: the step was given up and made no files")


class OutOfMemoryError(TrainingWorkerError):
    """Even the smallest micro-batch does not fit."""

    code = "out_of_memory"
    status = grpc.StatusCode.RESOURCE_EXHAUSTED
    retry = "later"

    def __init__(self, tokens: int) -> None:
        super().__init__(f"a micro-batch of {tokens} tokens does not fit into memory")


class ModelUnsupportedError(TrainingWorkerError):
    """The base model computes its logits in a way that the chunked loss does not follow."""

    code = "model_unsupported"
    status = grpc.StatusCode.FAILED_PRECONDITION
    retry = "never"


class ConfigInvalidError(TrainingWorkerError):
    """An environment variable holds a value that can't be used."""

    code = "config_invalid"
    status = grpc.StatusCode.FAILED_PRECONDITION
    retry = "never"


CATALOGUE: tuple[type[TrainingWorkerError], ...] = (
    RequestInvalidError,
    CallIdReusedError,
    BlobMissingError,
    BlobRefusedError,
    AdapterInvalidError,
    TrainingBusyError,
    StepCancelledError,
    StepNotFiniteError,
    OutOfMemoryError,
    ModelUnsupportedError,
    ConfigInvalidError,
)
