"""One answer while it is written: the rows as they grow, and the parts that chat and completions share.

Each frame names the weights that its own token was computed with, as the batch reports them, never what was asked for.
"""

import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from starlette.requests import Request

from backtalk_worker.engine.domain.request import PositionScores, Sampling, Token, TokenScore
from backtalk_worker.engine.domain.text import TokenBytes
from backtalk_worker.engine.inputs.requests import ChatRequest, CompletionRequest
from backtalk_worker.engine.outputs.batch import Update

FINGERPRINT = "backtalk-engine-0.1.0"
LOGPROB_MIN = -9999.0
"""Minus infinity, which JSON has not, as vLLM writes it."""

Json = dict[str, Any]


@dataclass(slots=True)
class RowAnswer:
    """One row so far."""

    prompt_ids: Sequence[int]
    tokens: list[Token] = field(default_factory=list[Token])
    text: str = ""
    characters: int = 0
    """Of all tokens' own characters, special tokens included."""
    prompt_scores: list[PositionScores | None] | None = None
    finish_reason: str | None = None
    stop_reason: str | int | None = None

    def take(self, update: Update) -> None:
        """Adds what one step brought."""
        if update.prompt_scores:
            self.prompt_scores = update.prompt_scores
        self.text += update.text
        if update.aborted:
            self.finish_reason = "abort"
        if update.token is not None:
            self.tokens.append(update.token)
            self.finish_reason = update.token.finish_reason
            self.stop_reason = update.token.stop_reason

    @property
    def token_ids(self) -> list[int]:
        return [token.token for token in self.tokens]


class AnswerWriter:
    """Writes one answer, whole or in frames; a subclass says how a choice of its kind looks."""

    kind: ClassVar[str]
    frame_kind: ClassVar[str]
    id_prefix: ClassVar[str]
    usage_details: ClassVar[Json] = {}
    """What stands beside the counts of a row that is still growing."""

    def __init__(
        self,
        http: Request,
        request: ChatRequest | CompletionRequest,
        prompts: Sequence[Sequence[int]],
        sampling: Sampling,
        tokens: TokenBytes,
    ) -> None:
        options = request.stream_options
        own_id = http.headers.get("x-request-id") or request.request_id or uuid.uuid4().hex[:16]
        self._id = f"{self.id_prefix}-{own_id}"
        self._created = int(time.time())
        self._model = ""
        self.rows = [RowAnswer(ids) for ids in prompts]
        self._with_ids = bool(request.return_token_ids)
        self._with_logprobs = request.wants_logprobs
        self._with_usage = options is not None and options.include_usage
        self._with_running_usage = self._with_usage and options is not None and options.continuous_usage_stats
        self.scores = ScoreWriter(tokens, bool(request.return_tokens_as_token_ids), sampling)

    def take(self, index: int, update: Update) -> None:
        """Adds what one step brought for one row, and by which weights."""
        self._model = update.model
        self.rows[index].take(update)

    def first_frames(self) -> list[Json]:
        """Frames before that of the first token, once it is known."""
        return []

    def frames(self, index: int, update: Update) -> list[Json]:
        """The frames of one update that was taken; the last one of a row says why it is the last."""
        row = self.rows[index]
        choices = self._frame_choices(index, row, update)
        frames = [self._outer(self.frame_kind, [choice]) for choice in choices]
        if self._with_running_usage:
            for frame in frames:
                frame["usage"] = {**usage(len(row.prompt_ids), len(row.tokens)), **self.usage_details}
        if row.finish_reason is not None and not self._with_usage:
            frames[-1]["system_fingerprint"] = FINGERPRINT
        return frames

    def last_frames(self) -> list[Json]:
        """The usage frame, where it was asked for."""
        if not self._with_usage:
            return []
        return [{**self._outer(self.frame_kind, []), "usage": self._usage(), "system_fingerprint": FINGERPRINT}]

    def body(self) -> Json:
        """The whole answer."""
        return {
            **self._outer(self.kind, [self._choice(index, row) for index, row in enumerate(self.rows)]),
            "service_tier": None,
            "system_fingerprint": FINGERPRINT,
            "usage": {**self._usage(), "prompt_tokens_details": None, "completion_tokens_details": None},
            **self._body_details(),
            "kv_transfer_params": None,
        }

    def _frame_choices(self, index: int, row: RowAnswer, update: Update) -> list[Json]:
        """One for each frame."""
        raise NotImplementedError

    def _choice(self, index: int, row: RowAnswer) -> Json:
        raise NotImplementedError

    def _body_details(self) -> Json:
        return {}

    def _outer(self, kind: str, choices: list[Json]) -> Json:
        return {"id": self._id, "object": kind, "created": self._created, "model": self._model, "choices": choices}

    def _usage(self) -> Json:
        """Rows of one prompt count it once."""
        prompts = {id(row.prompt_ids): len(row.prompt_ids) for row in self.rows}
        return usage(sum(prompts.values()), sum(len(row.tokens) for row in self.rows))


def usage(prompt_tokens: int, answer_tokens: int) -> Json:
    """The three counts."""
    return {
        "prompt_tokens": prompt_tokens,
        "total_tokens": prompt_tokens + answer_tokens,
        "completion_tokens": answer_tokens,
    }


@dataclass(frozen=True, slots=True)
class ScoreWriter:
    """Writes scores in the shapes of chat, completions and prompts."""

    tokens: TokenBytes
    as_ids: bool
    sampling: Sampling

    def chat(self, token: Token) -> Json:
        """One entry of `logprobs.content`."""
        if token.scores is None:
            raise ValueError("a token without scores has no logprobs")
        listed: Sequence[TokenScore] = (token.scores.chosen, *token.scores.others)
        if not self.sampling.logprob_ids:
            listed = listed[: self.sampling.top_logprobs or 0]
        return {
            **self._entry(token.scores.chosen, token),
            "top_logprobs": [self._entry(score, token) for score in listed],
        }

    def completion(self, tokens: Sequence[Token], offset: int) -> Json:
        """`logprobs` of completions for tokens that stand together from character `offset` of the answer on."""
        offsets: list[int] = []
        for token in tokens:
            offsets.append(offset)
            offset += len(token.token_text)
        return {
            "text_offset": offsets,
            "token_logprobs": [logprob(t.scores.chosen) if t.scores else None for t in tokens],
            "tokens": [self._name(t.token, t.token_text) for t in tokens],
            "top_logprobs": [
                {self._name(s.token, self._text(s, t)): logprob(s) for s in (t.scores.chosen, *t.scores.others)}
                if t.scores
                else None
                for t in tokens
            ],
        }

    def prompt(self, scores: Sequence[PositionScores | None] | None) -> list[Json | None] | None:
        """`prompt_logprobs`: null for the first id, then a map by id with the prompt's own id first."""
        return None if scores is None else [position and self._position(position) for position in scores]

    def _position(self, position: PositionScores) -> Json:
        return {
            str(s.token): {"logprob": logprob(s), "rank": s.rank, "decoded_token": self.tokens.text(s.token)}
            for s in (position.chosen, *position.others)
        }

    def _entry(self, score: TokenScore, token: Token) -> Json:
        text = self._text(score, token)
        return {"token": self._name(score.token, text), "logprob": logprob(score), "bytes": list(text.encode())}

    def _text(self, score: TokenScore, token: Token) -> str:
        """The drawn token has the characters that it completed; another has its own alone."""
        return token.token_text if score.token == token.token else self.tokens.text(score.token)

    def _name(self, token: int, text: str) -> str:
        return f"token_id:{token}" if self.as_ids else text


def logprob(score: TokenScore) -> float:
    """Nats, never below what JSON can carry."""
    return max(score.logprob, LOGPROB_MIN)
