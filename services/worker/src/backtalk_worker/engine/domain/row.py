"""The life of one row: its ids, how far they are computed, what its next token means for it."""

import math
import random
from dataclasses import dataclass, field

from backtalk_worker.engine.domain.request import PositionScores, Prompt, Sampling, Token
from backtalk_worker.engine.domain.sampling import Draw, DrawRequest
from backtalk_worker.engine.domain.text import IncrementalText, StopText, TokenBytes


@dataclass(slots=True)
class Row:
    """One answer in the making."""

    prompt: Prompt
    sampling: Sampling
    length_max: int
    """Prompt and answer together, in tokens."""
    text: IncrementalText
    stop: StopText
    random: random.Random
    ids: list[int]
    """The prompt's ids, then the answer's."""
    computed: int = 0
    """How many of `ids` have keys and values."""
    prompt_scores: list[PositionScores | None] = field(default_factory=list[PositionScores | None])
    """One entry per prompt id once scored; None for the first, which has no context, and for those not asked for."""
    finish_reason: str | None = None

    @classmethod
    def start(cls, prompt: Prompt, sampling: Sampling, length_max: int, tokens: TokenBytes) -> "Row":
        """A row that has computed nothing yet. Without a seed its random numbers are fresh."""
        return cls(
            prompt=prompt,
            sampling=sampling,
            length_max=length_max,
            text=IncrementalText(tokens, sampling.skip_special_tokens, sampling.kept_ids),
            stop=StopText(sampling.stop, sampling.include_stop_text),
            # Python takes a seed's absolute value: -7 would draw as 7 does.
            random=random.Random(None if sampling.seed is None else sampling.seed % 2**64),
            ids=list(prompt.ids),
        )

    @property
    def prompt_length(self) -> int:
        return len(self.prompt.ids)

    @property
    def answer_length(self) -> int:
        return len(self.ids) - len(self.prompt.ids)

    @property
    def is_prefilling(self) -> bool:
        """Whether more than the newest id has to be computed before a token can be drawn."""
        return len(self.ids) - self.computed > 1 or self.answer_length == 0

    @property
    def scores_prompt(self) -> bool:
        return self.sampling.prompt_logprobs is not None

    def score(self, position: int, scores: list[PositionScores]) -> None:
        """Takes the scores of the prompt ids that follow `position`; those known from before a restart stay.

        Ids whose keys were known before the row began have no score.
        """
        self.prompt_scores.extend([None] * (position + 1 - len(self.prompt_scores)))
        known = len(self.prompt_scores) - 1 - position
        self.prompt_scores.extend(scores[max(0, known) :])

    @property
    def is_scored_soundly(self) -> bool:
        """Whether each score of the prompt is a number."""
        return not any(scores is not None and math.isnan(scores.chosen.logprob) for scores in self.prompt_scores)

    def request_draw(self) -> DrawRequest:
        """What to ask of the sampler at the next position; consumes one random number."""
        banned: tuple[int, ...] = ()
        if self.answer_length < self.sampling.min_tokens:
            banned = tuple(self.sampling.end_ids | self.sampling.stop_ids)
        uniform = self.random.random() if self.sampling.temperature > 0 else 0.0
        return DrawRequest(self.sampling, uniform, banned)

    def accept(self, drawn: Draw) -> Token:
        """Takes a drawn id as the next of the answer, and says what it adds and whether it is the last."""
        self.ids.append(drawn.token)
        added, own = self.text.add(drawn.token)
        reason, cause = self._end_by_id(drawn.token)
        if reason is not None and not self.sampling.include_stop_text:
            # An end token's own characters are no part of the answer, even where special tokens are part of it.
            added = ""
        text, matched = (added, None) if self.answer_length < self.sampling.min_tokens else self.stop.add(added)
        if matched is not None and reason is None:
            reason, cause = "stop", matched
        if reason is None and (self.answer_length >= self.sampling.max_tokens or len(self.ids) >= self.length_max):
            reason = "length"
        if reason is not None and matched is None:
            text += self.stop.flush()
        self.finish_reason = reason
        return Token(drawn.token, text, own, drawn.scores, reason, cause)

    def _end_by_id(self, token: int) -> tuple[str | None, int | None]:
        """The caller's own stop ids are named as the cause; the model's end ids are not."""
        if token in self.sampling.stop_ids:
            return "stop", token
        if token in self.sampling.end_ids:
            return "stop", None
        return None, None
