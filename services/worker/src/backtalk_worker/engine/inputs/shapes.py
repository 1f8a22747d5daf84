"""Pieces of answers that chat and completions share: logprobs in both shapes, prompt scores, usage.

In: scores and tokens of the engine. Out: plain JSON values. Minus infinity, which JSON has not, is −9999 as in vLLM.
"""

from collections.abc import Sequence
from typing import Any

from backtalk_worker.engine.domain.request import PositionScores, Sampling, Token, TokenScore
from backtalk_worker.engine.domain.text import TokenBytes

Json = dict[str, Any]
LOGPROB_MIN = -9999.0


class ScoreWriter:
    """Writes scores with or without the characters of tokens."""

    def __init__(self, tokens: TokenBytes, as_ids: bool, sampling: Sampling) -> None:
        self._tokens = tokens
        self._as_ids = as_ids
        self._sampling = sampling

    def chat(self, token: Token) -> Json:
        """One entry of `logprobs.content`."""
        scores = token.scores
        if scores is None:
            raise ValueError("a token without scores has no logprobs")
        listed: Sequence[TokenScore] = (scores.chosen, *scores.others)
        if not self._sampling.logprob_ids:
            listed = listed[: self._sampling.top_logprobs or 0]
        return {
            **self._entry(scores.chosen, token.token_text),
            "top_logprobs": [self._entry(score, self._text(score, token)) for score in listed],
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

    def prompt(self, scores: Sequence[PositionScores | None]) -> list[Json | None]:
        """`prompt_logprobs`: null for the first id, then a map by id with the prompt's own id first."""
        return [
            None
            if position is None
            else {
                str(score.token): {
                    "logprob": logprob(score),
                    "rank": score.rank,
                    "decoded_token": self._tokens.text(score.token),
                }
                for score in (position.chosen, *position.others)
            }
            for position in scores
        ]

    def _entry(self, score: TokenScore, text: str) -> Json:
        return {
            "token": self._name(score.token, text),
            "logprob": logprob(score),
            "bytes": list(text.encode()),
        }

    def _text(self, score: TokenScore, token: Token) -> str:
        """The drawn token has the characters it completed in its place; another has its own alone."""
        return token.token_text if score.token == token.token else self._tokens.text(score.token)

    def _name(self, token: int, text: str) -> str:
        return f"token_id:{token}" if self._as_ids else text


def logprob(score: TokenScore) -> float:
    """Nats, never below what JSON can carry."""
    return max(score.logprob, LOGPROB_MIN)


def usage(prompt_tokens: int, answer_tokens: int) -> Json:
    """The three counts."""
    return {
        "prompt_tokens": prompt_tokens,
        "total_tokens": prompt_tokens + answer_tokens,
        "completion_tokens": answer_tokens,
    }


def full_usage(prompt_tokens: int, answer_tokens: int) -> Json:
    """The three counts with the details that this engine leaves empty."""
    return {**usage(prompt_tokens, answer_tokens), "prompt_tokens_details": None, "completion_tokens_details": None}
