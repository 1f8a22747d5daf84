"""The bodies this engine takes, as data: types are checked here, meanings in `sampling` and `prompts`.

Errors are in vLLM's words, without the caller's values. Fields that are not known are ignored, as vLLM does.
"""

from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, Field, ValidationError
from starlette.requests import Request

from backtalk_worker.engine import errors

Ids = list[Annotated[int, Field(ge=0)]]
INT64 = 2**63
SALT_LENGTH_MAX = 1024


class StreamOptions(BaseModel):
    include_usage: bool = False
    continuous_usage_stats: bool = False


class GenerationRequest(BaseModel):
    """What chat and completions have in common."""

    model: str | None = None
    max_tokens: int | None = None
    n: int = 1
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    seed: Annotated[int | None, Field(ge=-INT64, lt=INT64)] = None
    stop: str | list[str] | None = None
    stop_token_ids: list[int] | None = None
    min_tokens: int = 0
    ignore_eos: bool = False
    include_stop_str_in_output: bool = False
    skip_special_tokens: bool = True
    allowed_token_ids: list[int] | None = None
    logprob_token_ids: list[int] | None = None
    prompt_logprobs: int | None = None
    # Not in vLLM, which ignores it and scores all: ids before this index need no score, so that the keys and values of
    # a known beginning are used again.
    prompt_logprobs_start: Annotated[int, Field(ge=0)] = 0
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    return_token_ids: bool | None = None
    return_tokens_as_token_ids: bool | None = None
    cache_salt: Any = None
    request_id: str | None = None
    # Present so that a value that would change the answer is refused instead of ignored.
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    repetition_penalty: float | None = None
    logit_bias: dict[str, float] | None = None
    bad_words: list[str] | None = None
    use_beam_search: bool | None = None
    structured_outputs: Any = None
    response_format: Any = None
    truncate_prompt_tokens: int | None = None


class ChatRequest(GenerationRequest):
    """`POST /v1/chat/completions`."""

    messages: list[dict[str, Any]]
    max_completion_tokens: int | None = None
    logprobs: bool | None = False
    top_logprobs: int | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    add_generation_prompt: bool = True
    continue_final_message: bool = False
    chat_template_kwargs: dict[str, Any] | None = None

    @property
    def wants_logprobs(self) -> bool:
        return bool(self.logprobs)


class CompletionRequest(GenerationRequest):
    """`POST /v1/completions`."""

    prompt: Ids | list[Ids] | str | list[str] | None = None
    max_tokens: int | None = 16
    logprobs: int | None = None
    echo: bool | None = False
    suffix: str | None = None
    add_special_tokens: bool = True

    @property
    def wants_logprobs(self) -> bool:
        return self.logprobs is not None


class TokenizeRequest(BaseModel):
    """`POST /tokenize`: a prompt or messages."""

    model: str | None = None
    prompt: str | None = None
    messages: list[dict[str, Any]] | None = None
    tools: list[dict[str, Any]] | None = None
    add_generation_prompt: bool = True
    add_special_tokens: bool = True
    return_token_strs: bool | None = False


class DetokenizeRequest(BaseModel):
    """`POST /detokenize`."""

    model: str | None = None
    tokens: Ids


class LoadAdapterRequest(BaseModel):
    """`POST /v1/load_lora_adapter`."""

    lora_name: str
    lora_path: str
    load_inplace: bool = False


class UnloadAdapterRequest(BaseModel):
    """`POST /v1/unload_lora_adapter`."""

    lora_name: str


Body = TypeVar("Body", bound=BaseModel)


async def read_request(model: type[Body], http: Request, bytes_max: int) -> Body:
    """A checked body, refused as soon as it is known to be over the limit, or not to be JSON."""
    kind = http.headers.get("content-type", "application/json").split(";")[0].strip().lower()
    if kind != "application/json":
        raise malformed("Unsupported Media Type: Only 'application/json' is allowed", None)
    declared = http.headers.get("content-length", "0")
    if declared.isdigit() and int(declared) > bytes_max:
        raise errors.BodyTooLargeError(bytes_max)
    data = bytearray()
    async for part in http.stream():
        data += part
        if len(data) > bytes_max:
            raise errors.BodyTooLargeError(bytes_max)
    return _decoded(model, bytes(data))


def malformed(problem: str, param: str | None) -> errors.MalformedRequestError:
    """One problem with a body."""
    return errors.MalformedRequestError(f"1 validation error:\n  {problem}", param=param)


def _decoded(model: type[Body], data: bytes) -> Body:
    """Nesting that is too deep and bytes that are not UTF-8 count as bad JSON."""
    if not data:
        raise malformed("{'type': 'missing', 'loc': 'body', 'msg': 'Field required'}", "body")
    try:
        return model.model_validate_json(data)
    except ValidationError as error:
        problems = [
            (".".join(["body", *(str(part) for part in problem["loc"])]), problem["type"], problem["msg"])
            for problem in error.errors(include_url=False, include_input=False, include_context=False)
        ]
        lines = [f"  {{'type': '{kind}', 'loc': '{field}', 'msg': '{words}'}}" for field, kind, words in problems]
        plural = "s" if len(problems) > 1 else ""
        message = "\n".join([f"{len(problems)} validation error{plural}:", *lines])
        raise errors.MalformedRequestError(message, param=problems[0][0]) from error
