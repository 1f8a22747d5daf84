"""The bodies this engine takes, as data: types are checked here, meanings in `sampling` and `prompts`.

Errors are in vLLM's words, without the caller's values. A field that is not listed here is refused by name: what a
later release of a dialect makes of it cannot be known.
"""

import re
from collections.abc import Sequence
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.requests import Request

from backtalk_worker.engine import errors

Item = TypeVar("Item")
Listed = Annotated[list[Item], Field(fail_fast=True)]
"""One wrong item is named: a million of them would be a million problems."""
Ids = Listed[Annotated[int, Field(ge=0)]]
INT64 = 2**63
OBJECTS_MAX = 50_000
"""Objects and lists in a body: each takes a hundred bytes and more once it is decoded, whatever it is in JSON."""
MEMBERS_MAX = 1_000_000
"""As many ids as the rows of one request may have in all."""
STRINGS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
"""One that is never closed goes on to the end; else each quotation mark in it would be tried as a beginning."""


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class StreamOptions(_Body):
    include_usage: bool = False
    continuous_usage_stats: bool = False
    include_obfuscation: bool = False


class GenerationRequest(_Body):
    """What chat and completions have in common."""

    model: str | None = None
    max_tokens: int | None = None
    n: int = 1
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    seed: Annotated[int | None, Field(ge=-INT64, lt=INT64)] = None
    stop: str | Listed[str] | None = None
    stop_token_ids: Listed[int] | None = None
    min_tokens: int = 0
    ignore_eos: bool = False
    include_stop_str_in_output: bool = False
    skip_special_tokens: bool = True
    allowed_token_ids: Listed[int] | None = None
    logprob_token_ids: Listed[int] | None = None
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
    bad_words: Listed[str] | None = None
    use_beam_search: bool | None = None
    structured_outputs: Any = None
    response_format: Any = None
    truncate_prompt_tokens: int | None = None
    # What clients of the dialects send and no answer of this engine depends on.
    user: Any = None
    metadata: Any = None
    store: Any = None
    service_tier: Any = None
    safety_identifier: Any = None
    prompt_cache_key: Any = None
    prompt_cache_retention: Any = None
    priority: Any = None
    spaces_between_special_tokens: Any = None


class ChatRequest(GenerationRequest):
    """`POST /v1/chat/completions`."""

    messages: Listed[dict[str, Any]]
    max_completion_tokens: int | None = None
    logprobs: bool | None = False
    top_logprobs: int | None = None
    tools: Listed[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    add_generation_prompt: bool = True
    continue_final_message: bool = False
    chat_template_kwargs: dict[str, Any] | None = None
    parallel_tool_calls: Any = None
    reasoning_effort: Any = None
    verbosity: Any = None
    modalities: Any = None

    @property
    def wants_logprobs(self) -> bool:
        return bool(self.logprobs)


class CompletionRequest(GenerationRequest):
    """`POST /v1/completions`."""

    prompt: Ids | Listed[Ids] | str | Listed[str] | None = None
    max_tokens: int | None = 16
    logprobs: int | None = None
    echo: bool | None = False
    suffix: str | None = None
    add_special_tokens: bool = True

    @property
    def wants_logprobs(self) -> bool:
        return self.logprobs is not None


class TokenizeRequest(_Body):
    """`POST /tokenize`: a prompt or messages."""

    model: str | None = None
    prompt: str | None = None
    messages: Listed[dict[str, Any]] | None = None
    tools: Listed[dict[str, Any]] | None = None
    add_generation_prompt: bool = True
    add_special_tokens: bool = True
    chat_template_kwargs: dict[str, Any] | None = None
    return_token_strs: bool | None = False


class DetokenizeRequest(_Body):
    """`POST /detokenize`."""

    model: str | None = None
    tokens: Ids


class LoadAdapterRequest(_Body):
    """`POST /v1/load_lora_adapter`."""

    lora_name: str
    lora_path: str
    load_inplace: bool = False


class UnloadAdapterRequest(_Body):
    """`POST /v1/unload_lora_adapter`."""

    lora_name: str


Body = TypeVar("Body", bound=BaseModel)


async def read_request(model: type[Body], http: Request, bytes_max: int) -> Body:
    """A checked body, refused as soon as it is known to be over the limit, or not to be JSON."""
    # A page of another site may send a body without a type, and no browser asks the engine first.
    kind = http.headers.get("content-type", "").split(";")[0].strip().lower()
    if kind != "application/json":
        raise errors.MediaTypeError()
    declared = http.headers.get("content-length", "0")
    if declared.isdigit() and int(declared) > bytes_max:
        raise errors.BodyTooLargeError(bytes_max)
    data = bytearray()
    async for part in http.stream():
        data += part
        if len(data) > bytes_max:
            raise errors.BodyTooLargeError(bytes_max)
    return decoded(model, bytes(data))


def malformed(problem: str, param: str | None) -> errors.MalformedRequestError:
    """One problem with a body."""
    return errors.MalformedRequestError(f"1 validation error:\n  {problem}", param=param)


def are_over(texts: Sequence[bytes], most: int, *marks: bytes) -> bool:
    """Whether these marks stand in all these JSON texts more often than that, strings aside."""

    def count(text: bytes) -> int:
        return sum(text.count(mark) for mark in marks)

    return sum(map(count, texts)) > most and sum(count(STRINGS.sub(b"", text)) for text in texts) > most


def decoded(model: type[Body], data: bytes) -> Body:
    """Nesting that is too deep and bytes that are not UTF-8 count as bad JSON."""
    if not data:
        raise malformed("{'type': 'missing', 'loc': 'body', 'msg': 'Field required'}", "body")
    if are_over([data], OBJECTS_MAX, b"{", b"[") or are_over([data], MEMBERS_MAX, b","):
        raise errors.BodyTooManyPartsError(OBJECTS_MAX, MEMBERS_MAX)
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
