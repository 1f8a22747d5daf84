"""Every error of the engine, with status, type and words as vLLM's dialect has them.

`code` is Backtalk's name for it, in logs and metrics.
"""

from typing import ClassVar

from backtalk_worker.process.errors import WorkerError


class EngineError(WorkerError):
    """A failure that the caller is answered with, in vLLM's shape."""

    status: ClassVar[int] = 400
    type: ClassVar[str] = "BadRequestError"

    def __init__(self, *facts: object, param: str | None = None) -> None:
        super().__init__(*facts)
        self.param = param

    def body(self) -> dict[str, object]:
        return {"error": {"message": str(self), "type": self.type, "param": self.param, "code": self.status}}


class BadRequestError(EngineError):
    """The values are of the right types, and cannot be honoured together or at all."""

    code = "bad_request"


class MalformedRequestError(EngineError):
    """The body is not JSON, or not of the expected types."""

    code, type = "malformed_request", "Bad Request"


class BodyTooLargeError(EngineError):
    code, status, type = "body_too_large", 413, "Bad Request"
    words = "The request body is larger than {} bytes."


class BodyTooManyPartsError(EngineError):
    """Refused before it is decoded, because decoding is what it would cost most."""

    code, status, type = "body_too_many_parts", 413, "Bad Request"
    words = "The request body holds more than {} objects and lists, or more than {} values."


class MediaTypeError(EngineError):
    """No type at all is refused too: it is what a page of another site can send."""

    code, status, type = "unsupported_media_type", 415, "Bad Request"
    words = "Unsupported Media Type: Only 'application/json' is allowed"


class UnauthorizedError(EngineError):
    code, status, type = "unauthorized", 401, "Unauthorized"
    words = "This engine asks for its key: send it as `Authorization: Bearer …`."


class ForeignOriginError(EngineError):
    """A page in a browser asks, under a name of its own or from another site."""

    code, status, type = "foreign_origin", 403, "Forbidden"
    words = "{} names another site: this engine answers programs on its own machine."


class TemplateArgumentError(EngineError):
    """A caller gives values to the model's template, never a template, and nothing that changes how it is applied."""

    code = "template_argument"
    words = "chat_template_kwargs.{0} {1}. (parameter=chat_template_kwargs.{0})"

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(name, problem, param=f"chat_template_kwargs.{name}")


class RenderTooLongError(EngineError):
    """The model's template, or its tokenizer, takes too long over a prompt."""

    code = "render_too_long"
    words = "These messages take longer than {} s to be made into a prompt."


class NotSupportedError(EngineError):
    """A feature of the dialect that this engine does not have."""

    code = "not_supported"
    words = "{0} is not supported by the built-in engine. (parameter={0})"

    def __init__(self, param: str) -> None:
        super().__init__(param, param=param)


class ContextOverflowError(EngineError):
    """The prompt alone leaves no room for an answer."""

    code = "context_overflow"
    words = (
        "This model's maximum context length is {0} tokens. However, your prompt contains at least {1} input tokens, "
        "which exceeds this limit even without any output tokens. Please reduce the length of the input prompt. "
        "(parameter=input_tokens, value={1})"
    )

    def __init__(self, limit: int, length: int) -> None:
        super().__init__(limit, length, param="input_tokens")


class ModelNotFoundError(EngineError):
    """No base model and no loaded adapter has this name."""

    code, status, type = "model_not_found", 404, "NotFoundError"
    words = "The model `{}` does not exist. Valid aliases: {}."


class EngineBusyError(EngineError):
    """The waiting queue is full."""

    code, status, type = "engine_busy", 503, "Service Unavailable"
    words = (
        "The engine is currently busy and cannot accept new requests. "
        "Please try again later or on a different instance."
    )


class TooManyRowsError(EngineError):
    """More than ever fit, so that no later try would do."""

    code = "too_many_rows"
    words = "This request asks for {} answers, and the engine takes {} at once: ask for fewer (`n`, `prompt`)."


class EngineStoppedError(EngineError):
    """The engine is shutting down, or its loop has died; the log of its loop says why."""

    code, status, type = "engine_stopped", 503, "Service Unavailable"
    words = "The engine is stopped and takes no requests."


class LoopFailedError(EngineError):
    """The batching loop died in the middle of an answer."""

    code, status, type = "loop_failed", 500, "InternalServerError"
    words = "The engine's loop encountered an issue. See its log for the root cause."


class LogitsNotFiniteError(EngineError):
    """A row's numbers ran over, or the model's or adapter's weights are damaged; other rows go on."""

    code, status, type = "logits_not_finite", 500, "InternalServerError"
    words = "The weights of `{}` give numbers that are not finite."


class InternalError(EngineError):
    """Anything unforeseen while answering a request."""

    code, status, type = "internal", 500, "InternalServerError"
    words = "Internal server error"


class AdapterIncompleteError(EngineError):
    code, type = "adapter_incomplete", "InvalidUserInput"
    words = "Both 'lora_name' and 'lora_path' must be provided."


class AdapterLoadedError(EngineError):
    """A name is never used again for other weights."""

    code, type = "adapter_loaded", "InvalidUserInput"
    words = "The lora adapter '{}' has already been loaded."


class AdapterNamedAsBaseError(EngineError):
    code, type = "adapter_named_as_base", "InvalidUserInput"
    words = "The lora adapter '{}' conflicts with a served base model."


class AdaptersFullError(EngineError):
    code, type = "adapters_full", "InvalidUserInput"
    words = "The engine holds {} lora adapters already: unload one first."


class AdapterNotFoundError(EngineError):
    """The path holds no adapter."""

    code, status, type = "adapter_not_found", 404, "NotFoundError"
    words = "Loading lora {} failed: No adapter found for <path>"


class AdapterUnknownError(EngineError):
    """No loaded adapter has this name."""

    code, status, type = "adapter_unknown", 404, "NotFoundError"
    words = "The lora adapter '{}' cannot be found."


class AdapterInvalidError(EngineError):
    """The adapter's files are damaged, do not fit the base model, or ask for more than plain LoRA."""

    code = "adapter_invalid"
    words = "Loading lora {} failed: {}"


class AdapterRankTooHighError(EngineError):
    """vLLM answers 500 here, and so does this engine; it lives on."""

    code, status, type = "adapter_rank_too_high", 500, "InternalServerError"
    words = "Call to add_lora method failed: LoRA rank {} is greater than max_lora_rank {}."
