"""Writes text completions, whole and in frames, in the shapes of vLLM's transcripts.

In: rows and updates. Out: JSON values. A row's first frame carries its prompt's ids.
"""

from dataclasses import dataclass

from backtalk_worker.engine.inputs.answer import FINGERPRINT, AnswerHead, RowAnswer
from backtalk_worker.engine.inputs.shapes import Json, full_usage, usage
from backtalk_worker.engine.outputs.batch import Update

KIND = "text_completion"


@dataclass(frozen=True, slots=True)
class CompletionWriter:
    """One text completion, of one prompt or several."""

    head: AnswerHead

    def first_frames(self) -> list[Json]:
        """None: the first token's frame carries everything."""
        return []

    def frame(self, index: int, update: Update) -> Json:
        """One token; the last one says why it is the last."""
        head, row, token = self.head, self.head.rows[index], update.token
        logprobs = None
        if head.with_logprobs and token is not None:
            logprobs = head.scores.completion([token], row.characters)
            row.characters += len(token.token_text)
        is_first = len(row.tokens) <= 1
        choice: Json = {
            "index": index,
            "text": "" if token is None else token.text,
            "logprobs": logprobs,
            "finish_reason": row.finish_reason,
            "stop_reason": row.stop_reason,
            "prompt_token_ids": list(row.prompt_ids) if head.with_ids and is_first else None,
            "token_ids": ([] if token is None else [token.token]) if head.with_ids else None,
        }
        frame = head.frame(KIND, [choice])
        if head.with_running_usage:
            frame["usage"] = usage(len(row.prompt_ids), len(row.tokens))
        if row.finish_reason is not None and not head.with_usage:
            frame["system_fingerprint"] = FINGERPRINT
        return frame

    def last_frames(self) -> list[Json]:
        """The usage frame, where it was asked for."""
        if not self.head.with_usage:
            return []
        counts = usage(self.head.prompt_tokens, self.head.answer_tokens)
        return [{**self.head.frame(KIND, []), "usage": counts, "system_fingerprint": FINGERPRINT}]

    def body(self) -> Json:
        """The whole completion."""
        head = self.head
        return {
            **head.frame(KIND, [self._choice(index, row) for index, row in enumerate(head.rows)]),
            "service_tier": None,
            "system_fingerprint": FINGERPRINT,
            "usage": full_usage(head.prompt_tokens, head.answer_tokens),
            "kv_transfer_params": None,
        }

    def _choice(self, index: int, row: RowAnswer) -> Json:
        head = self.head
        return {
            "index": index,
            "text": row.text,
            "logprobs": head.scores.completion(row.tokens, 0) if head.with_logprobs else None,
            "finish_reason": row.finish_reason,
            "stop_reason": row.stop_reason,
            "token_ids": row.token_ids if head.with_ids else None,
            "prompt_logprobs": head.scores.prompt(row.prompt_scores) if row.prompt_scores is not None else None,
            "prompt_token_ids": list(row.prompt_ids) if head.with_ids else None,
        }
