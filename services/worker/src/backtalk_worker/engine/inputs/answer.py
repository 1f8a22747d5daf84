"""What every answer needs while it is written: whose it is, what was asked for, and the rows as they grow.

In: updates of one generation. Out: rows with their tokens, for the writers of chat and completions.
"""

import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from starlette.requests import Request

from backtalk_worker.engine.domain.request import PositionScores, Token
from backtalk_worker.engine.inputs.requests import GenerationRequest
from backtalk_worker.engine.inputs.shapes import Json, ScoreWriter
from backtalk_worker.engine.outputs.batch import Update

FINGERPRINT = "backtalk-engine-0.1.0"


@dataclass(slots=True)
class RowAnswer:
    """One row so far."""

    prompt_ids: Sequence[int]
    tokens: list[Token] = field(default_factory=list[Token])
    characters: int = 0
    """Of all tokens' own characters, special tokens included."""
    prompt_scores: list[PositionScores | None] | None = None
    finish_reason: str | None = None
    stop_reason: str | int | None = None

    def take(self, update: Update) -> None:
        """Adds what one step brought."""
        if update.prompt_scores:
            self.prompt_scores = update.prompt_scores
        if update.aborted:
            self.finish_reason = "abort"
        if update.token is not None:
            self.tokens.append(update.token)
            self.finish_reason = update.token.finish_reason
            self.stop_reason = update.token.stop_reason

    @property
    def text(self) -> str:
        return "".join(token.text for token in self.tokens)

    @property
    def token_ids(self) -> list[int]:
        return [token.token for token in self.tokens]


@dataclass(frozen=True, slots=True)
class AnswerHead:
    """The same in every frame of an answer."""

    id: str
    created: int
    model: str
    rows: list[RowAnswer]
    with_ids: bool
    with_logprobs: bool
    with_usage: bool
    with_running_usage: bool
    scores: ScoreWriter

    def frame(self, kind: str, choices: list[Json]) -> Json:
        """The outer part of a streamed frame."""
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model, "choices": choices}

    @property
    def prompt_tokens(self) -> int:
        """Rows of one prompt count it once."""
        seen = {id(row.prompt_ids): len(row.prompt_ids) for row in self.rows}
        return sum(seen.values())

    @property
    def answer_tokens(self) -> int:
        return sum(len(row.tokens) for row in self.rows)


class AnswerWriter(Protocol):
    """Writes one kind of answer."""

    @property
    def head(self) -> AnswerHead: ...

    def first_frames(self) -> list[Json]:
        """Frames before the first token."""
        ...

    def frame(self, index: int, update: Update) -> Json:
        """The frame of one update, which the row has already taken."""
        ...

    def last_frames(self) -> list[Json]:
        """Frames after the last token."""
        ...

    def body(self) -> Json:
        """The whole answer."""
        ...


def answer_id(prefix: str, http: Request, request: GenerationRequest) -> str:
    """The caller's id where one was sent, else a fresh one."""
    return f"{prefix}-{http.headers.get('x-request-id') or request.request_id or uuid.uuid4().hex[:16]}"


def make_head(
    answer: str, model: str, rows: list[RowAnswer], request: GenerationRequest, with_logprobs: bool, scores: ScoreWriter
) -> AnswerHead:
    """An answer's constant part."""
    options = request.stream_options
    return AnswerHead(
        id=answer,
        created=int(time.time()),
        model=model,
        rows=rows,
        with_ids=bool(request.return_token_ids),
        with_logprobs=with_logprobs,
        with_usage=options is not None and options.include_usage,
        with_running_usage=options is not None and options.include_usage and options.continuous_usage_stats,
        scores=scores,
    )
