"""What one row of generation is asked to do, and what it gives; ids and numbers only, never text of a prompt."""

from dataclasses import dataclass
from typing import Literal

LogprobsMode = Literal["processed_logprobs", "raw_logprobs"]
"""Processed: of the distribution that was drawn from. Raw: of the model's own, at temperature 1."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to draw tokens and when to stop. The defaults draw from the model's own distribution."""

    max_tokens: int
    min_tokens: int = 0
    temperature: float = 1.0
    """0 = greedy."""
    top_p: float = 1.0
    top_k: int = 0
    """0 = all tokens."""
    min_p: float = 0.0
    seed: int | None = None
    stop: tuple[str, ...] = ()
    stop_ids: frozenset[int] = frozenset()
    """Ids asked for by the caller; named in `stop_reason`."""
    end_ids: frozenset[int] = frozenset()
    """Ids that end an answer by the model's own convention; empty when the caller ignores them."""
    include_stop_text: bool = False
    skip_special_tokens: bool = True
    kept_ids: frozenset[int] = frozenset()
    """Special ids whose characters stand in the text all the same."""
    allowed_ids: tuple[int, ...] = ()
    """Empty = every id may be drawn."""
    top_logprobs: int | None = None
    """None = no logprobs asked for; 0 = only the drawn token's."""
    logprob_ids: tuple[int, ...] = ()
    """Ids whose logprobs are returned beside the drawn token's at every position."""
    prompt_logprobs: int | None = None
    """None = the prompt is not scored; k = the prompt token's logprob and the k likeliest."""
    prompt_logprobs_start: int = 0
    """Prompt ids before this index need no score."""

    @property
    def truncates(self) -> bool:
        """Whether some ids are cut before drawing."""
        return self.top_p < 1.0 or self.top_k > 0 or self.min_p > 0.0 or bool(self.allowed_ids)


@dataclass(frozen=True, slots=True)
class TokenScore:
    """Logprob of one token at one position."""

    token: int
    logprob: float
    """Nats."""
    rank: int = 0
    """1 = the likeliest token; 0 = not asked for."""


@dataclass(frozen=True, slots=True)
class PositionScores:
    """The scores at one position: the token that stands there first, then the others asked for, without repeats."""

    chosen: TokenScore
    others: tuple[TokenScore, ...] = ()


@dataclass(frozen=True, slots=True)
class Token:
    """One generated token, as the caller gets it."""

    token: int
    text: str
    """What it adds to the answer's text; empty while a character is incomplete or a stop text may be starting."""
    token_text: str
    """The token's own characters, special tokens included."""
    scores: PositionScores | None
    finish_reason: str | None = None
    """'stop', 'length' or 'abort' on the last token."""
    stop_reason: str | int | None = None
    """The stop text or id that matched, where the caller asked for it."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """The ids to go on from, and the namespace in which their keys and values may be shared."""

    ids: tuple[int, ...]
    salt: str = ""
