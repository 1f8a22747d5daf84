"""Every error of the engine: status, type, code and words as vLLM's dialect has them, and when it happens.

In: the facts of one failure. Out: an EngineError. The words never quote the text of a prompt or an answer.
"""

from dataclasses import dataclass


@dataclass(eq=False)
class EngineError(Exception):
    """A failure that the caller is told about."""

    code: str
    """Backtalk's name for it, for logs and metrics."""
    status: int
    type: str
    message: str
    param: str | None = None

    def body(self) -> dict[str, object]:
        """The JSON body in vLLM's shape."""
        return {
            "error": {"message": self.message, "type": self.type, "param": self.param, "code": self.status},
        }


def bad_request(message: str, param: str | None = None) -> EngineError:
    """The values are of the right types, and cannot be honoured together or at all."""
    return EngineError("bad_request", 400, "BadRequestError", message, param)


def invalid_parameter(param: str, message: str, value: object = None) -> EngineError:
    """One named value is out of its range."""
    shown = f"(parameter={param})" if value is None else f"(parameter={param}, value={value})"
    return EngineError("bad_request", 400, "BadRequestError", f"{message} {shown}", param)


def malformed(message: str, param: str | None) -> EngineError:
    """The body is not JSON, or not of the expected types."""
    return EngineError("malformed_request", 400, "Bad Request", message, param)


def body_too_large(limit: int) -> EngineError:
    """The body is over the limit, in bytes."""
    return EngineError("body_too_large", 413, "Bad Request", f"The request body is larger than {limit} bytes.")


def not_supported(param: str) -> EngineError:
    """A feature of the dialect that this engine does not have."""
    return EngineError(
        "not_supported",
        400,
        "BadRequestError",
        f"{param} is not supported by the built-in engine. (parameter={param})",
        param,
    )


def context_overflow(limit: int, length: int) -> EngineError:
    """The prompt alone leaves no room for an answer."""
    message = (
        f"This model's maximum context length is {limit} tokens. However, your prompt contains at least {length} input "
        "tokens, which exceeds this limit even without any output tokens. "
        "Please reduce the length of the input prompt. "
        f"(parameter=input_tokens, value={length})"
    )
    return EngineError("context_overflow", 400, "BadRequestError", message, "input_tokens")


def model_not_found(model: str, known: list[str]) -> EngineError:
    """No base model and no loaded adapter has this name."""
    message = f"The model `{model}` does not exist. Valid aliases: {', '.join(known)}."
    return EngineError("model_not_found", 404, "NotFoundError", message, "model")


def busy() -> EngineError:
    """The waiting queue is full."""
    message = (
        "The engine is currently busy and cannot accept new requests. "
        "Please try again later or on a different instance."
    )
    return EngineError("engine_busy", 503, "Service Unavailable", message)


def stopping() -> EngineError:
    """The engine is shutting down, or its loop has died; the log of its loop says why."""
    return EngineError("engine_stopped", 503, "Service Unavailable", "The engine is stopped and takes no requests.")


def loop_failed() -> EngineError:
    """The batching loop died in the middle of an answer."""
    message = "The engine's loop encountered an issue. See its log for the root cause."
    return EngineError("loop_failed", 500, "InternalServerError", message)


def internal() -> EngineError:
    """Anything unforeseen while answering a request."""
    return EngineError("internal", 500, "InternalServerError", "Internal server error")


def adapter_incomplete() -> EngineError:
    """Name or path is an empty string."""
    message = "Both 'lora_name' and 'lora_path' must be provided."
    return EngineError("adapter_incomplete", 400, "InvalidUserInput", message)


def adapter_loaded(name: str) -> EngineError:
    """The name is taken; a name is never used again for other weights."""
    message = f"The lora adapter '{name}' has already been loaded."
    return EngineError("adapter_loaded", 400, "InvalidUserInput", message)


def adapter_named_as_base(name: str) -> EngineError:
    """The name is the base model's."""
    message = f"The lora adapter '{name}' conflicts with a served base model."
    return EngineError("adapter_named_as_base", 400, "InvalidUserInput", message)


def adapters_full(limit: int) -> EngineError:
    """As many adapters as may be held are held."""
    message = f"The engine holds {limit} lora adapters already: unload one first."
    return EngineError("adapters_full", 400, "InvalidUserInput", message)


def adapter_not_found(name: str) -> EngineError:
    """The path holds no adapter."""
    message = f"Loading lora {name} failed: No adapter found for <path>"
    return EngineError("adapter_not_found", 404, "NotFoundError", message)


def adapter_unknown(name: str) -> EngineError:
    """No loaded adapter has this name."""
    return EngineError("adapter_unknown", 404, "NotFoundError", f"The lora adapter '{name}' cannot be found.")


def adapter_invalid(name: str, reason: str) -> EngineError:
    """The adapter's files are damaged, do not fit the base model, or ask for more than plain LoRA."""
    return EngineError("adapter_invalid", 400, "BadRequestError", f"Loading lora {name} failed: {reason}")


def adapter_rank_too_high(rank: int, limit: int) -> EngineError:
    """vLLM answers 500 here, and so does this engine; it lives on."""
    message = f"Call to add_lora method failed: LoRA rank {rank} is greater than max_lora_rank {limit}."
    return EngineError("adapter_rank_too_high", 500, "InternalServerError", message)
