"""Checks what a request asks of the sampler, and says it in the engine's own terms; errors name the field.

A field whose effect this engine does not have is refused when it would change the answer.
"""

import dataclasses
from collections.abc import Sequence

from backtalk_worker.engine import errors
from backtalk_worker.engine.domain.request import Sampling
from backtalk_worker.engine.inputs.requests import ChatRequest, CompletionRequest, GenerationRequest
from backtalk_worker.model.load import LoadedModel

ROWS_MAX = 64
TOP_LOGPROBS_MAX = 20
LOGPROB_IDS_MAX = 128
STOPS_MAX = 16
STOP_LENGTH_MAX = 1000
NAME_LENGTH_MAX = 1024
"""Of what stands in memory or in every part of an answer: a salt, a request's id."""


def read_samplings(
    request: ChatRequest | CompletionRequest,
    prompt_lengths: Sequence[int],
    length_max: int,
    model: LoadedModel,
    kept_ids: frozenset[int] = frozenset(),
) -> list[Sampling]:
    """`n` samplings a prompt, in the order of the prompts; with a seed, row i of each draws with seed + i."""
    _refuse_unsupported(request)
    _check_ranges(request)
    _check_ids(request, model.vocabulary_size)
    if request.allowed_token_ids is not None and not request.allowed_token_ids:
        raise _invalid("allowed_token_ids", "It allows no id at all.")
    sampling = Sampling(
        max_tokens=length_max,
        min_tokens=request.min_tokens,
        temperature=_temperature(request.temperature),
        top_p=1.0 if request.top_p is None else request.top_p,
        top_k=max(0, request.top_k or 0),
        min_p=request.min_p or 0.0,
        stop=_stops(request),
        stop_ids=frozenset(request.stop_token_ids or ()),
        end_ids=frozenset(() if request.ignore_eos else model.end_ids),
        include_stop_text=request.include_stop_str_in_output,
        skip_special_tokens=request.skip_special_tokens,
        kept_ids=kept_ids,
        allowed_ids=tuple(dict.fromkeys(request.allowed_token_ids or ())),
        top_logprobs=_top_logprobs(request),
        logprob_ids=tuple(dict.fromkeys(request.logprob_token_ids or ())),
        prompt_logprobs=None if request.stream else request.prompt_logprobs,
        prompt_logprobs_start=request.prompt_logprobs_start,
    )
    allowed, ending = {*sampling.allowed_ids}, sampling.end_ids | sampling.stop_ids
    if sampling.min_tokens and (allowed <= ending if allowed else len(ending) >= model.vocabulary_size):
        field = "allowed_token_ids" if allowed else "stop_token_ids"
        raise _invalid(field, "All ids that may be drawn end the answer, which `min_tokens` does not let end yet.")
    return [
        dataclasses.replace(sampling, max_tokens=most, seed=None if request.seed is None else request.seed + row)
        for most in [_max_tokens(request, length, length_max) for length in prompt_lengths]
        for row in range(request.n)
    ]


def _invalid(param: str, message: str, value: object = None) -> errors.BadRequestError:
    """One named value is out of its range."""
    detail = f"(parameter={param})" if value is None else f"(parameter={param}, value={value})"
    return errors.BadRequestError(f"{message} {detail}", param=param)


def _refuse_unsupported(request: GenerationRequest) -> None:
    neutral = {
        "frequency_penalty": (None, 0.0),
        "presence_penalty": (None, 0.0),
        "repetition_penalty": (None, 1.0),
        "logit_bias": (None, {}),
        "bad_words": (None, []),
        "use_beam_search": (None, False),
        "structured_outputs": (None,),
        "truncate_prompt_tokens": (None,),
    }
    for field, values in neutral.items():
        if getattr(request, field) not in values:
            raise errors.NotSupportedError(field)
    if request.response_format not in (None, {"type": "text"}):
        raise errors.NotSupportedError("response_format")
    if isinstance(request, CompletionRequest) and (request.echo or request.suffix):
        raise errors.NotSupportedError("echo" if request.echo else "suffix")
    if isinstance(request, ChatRequest):
        if request.continue_final_message:
            raise errors.NotSupportedError("continue_final_message")
        if request.tool_choice not in (None, "auto", "none"):
            raise errors.NotSupportedError("tool_choice")


GREEDY_BELOW = 1e-5
"""Logits divided by less are no numbers any more."""


def _temperature(asked: float | None) -> float:
    if asked is None:
        return 1.0
    return asked if asked >= GREEDY_BELOW else 0.0


def _check_ranges(request: GenerationRequest) -> None:
    if request.n < 1:
        raise errors.BadRequestError(f"n must be at least 1, got {request.n}.")
    if request.n > ROWS_MAX:
        raise _invalid("n", f"n must be at most {ROWS_MAX}, got {request.n}.", request.n)
    if request.stream_options is not None and not request.stream:
        raise _invalid("stream_options", "Stream options can only be defined when `stream=True`.")
    t, p, k, m = request.temperature, request.top_p, request.top_k, request.min_p
    if t is not None and not 0.0 <= t <= 100.0:
        words = f"temperature must be non-negative, got {t}." if t < 0 else f"temperature must be at most 100, got {t}."
        raise _invalid("temperature", words, t)
    if p is not None and not 0.0 < p <= 1.0:
        raise _invalid("top_p", f"top_p must be in (0, 1], got {p}.", p)
    if k is not None and k < -1:
        raise _invalid("top_k", f"top_k must be 0 (disable), or at least 1, got {k}.", k)
    if m is not None and not 0.0 <= m <= 1.0:
        raise _invalid("min_p", f"min_p must be in [0, 1], got {m}.", m)
    if request.min_tokens < 0:
        raise _invalid("min_tokens", f"min_tokens must be non-negative, got {request.min_tokens}.")
    asked = request.prompt_logprobs
    if asked is not None and not 0 <= asked <= TOP_LOGPROBS_MAX:
        words = f"Requested prompt logprobs of {asked}, which is greater than max allowed: {TOP_LOGPROBS_MAX}"
        raise _invalid("prompt_logprobs", words, asked)
    salt = request.cache_salt
    if salt is not None and not (isinstance(salt, str) and salt):
        raise _invalid("cache_salt", "Parameter 'cache_salt' must be a non-empty string if provided.")
    for field, text in (("cache_salt", salt), ("request_id", request.request_id)):
        if text is not None and len(text) > NAME_LENGTH_MAX:
            raise _invalid(field, f"{field} must have at most {NAME_LENGTH_MAX} characters, got {len(text)}.")


def _check_ids(request: ChatRequest | CompletionRequest, vocabulary: int) -> None:
    for field in ("stop_token_ids", "allowed_token_ids", "logprob_token_ids"):
        ids: list[int] = getattr(request, field) or []
        if any(not 0 <= token < vocabulary for token in ids):
            raise _invalid(field, f"{field} contains out-of-vocab token ids. Vocabulary size: {vocabulary}")
    if len(request.logprob_token_ids or ()) > LOGPROB_IDS_MAX:
        raise _invalid("logprob_token_ids", f"At most {LOGPROB_IDS_MAX} ids are allowed.")
    if request.logprob_token_ids and not request.wants_logprobs:
        raise _invalid("logprob_token_ids", "`logprob_token_ids` requires `logprobs` to be set.")


def _top_logprobs(request: ChatRequest | CompletionRequest) -> int | None:
    """None, or how many of the likeliest ids to return beside the drawn one."""
    if isinstance(request, ChatRequest):
        if request.top_logprobs and not request.logprobs:
            raise _invalid("top_logprobs", "when using `top_logprobs`, `logprobs` must be set to true.")
        asked = (request.top_logprobs or 0) if request.logprobs else None
    else:
        asked = request.logprobs
    if asked is not None and not 0 <= asked <= TOP_LOGPROBS_MAX:
        words = f"Requested sample logprobs of {asked}, which is greater than max allowed: {TOP_LOGPROBS_MAX}"
        raise _invalid("logprobs", words, asked)
    return asked


def _stops(request: GenerationRequest) -> tuple[str, ...]:
    stops = [request.stop] if isinstance(request.stop, str) else request.stop or []
    if len(stops) > STOPS_MAX:
        raise _invalid("stop", f"At most {STOPS_MAX} stop strings are allowed.")
    if any(not stop for stop in stops):
        raise _invalid("stop", "stop cannot contain an empty string.")
    if any(len(stop) > STOP_LENGTH_MAX for stop in stops):
        raise _invalid("stop", f"A stop string has at most {STOP_LENGTH_MAX} characters.")
    return tuple(stops)


def _max_tokens(request: ChatRequest | CompletionRequest, prompt_length: int, length_max: int) -> int:
    """The answer's bound: what was asked for, at most what the context leaves."""
    asked = request.max_tokens
    if isinstance(request, ChatRequest) and request.max_completion_tokens is not None:
        asked = request.max_completion_tokens
    if asked is not None and asked < 1:
        raise _invalid("max_tokens", f"max_tokens must be at least 1, got {asked}.", asked)
    if asked is not None and asked > length_max:
        words = (
            f"max_tokens={asked} cannot be greater than max_model_len={length_max}. Please request fewer output tokens."
        )
        raise _invalid("max_tokens", words, asked)
    room = length_max - prompt_length
    return room if asked is None else min(asked, room)
