"""Writes chat completions, whole and in frames, in the shapes of vLLM's transcripts.

In: rows and updates. Out: JSON values. The role frame comes with the first token and carries the prompt's ids.
"""

from dataclasses import dataclass

from backtalk_worker.engine.inputs.answer import FINGERPRINT, AnswerHead, RowAnswer
from backtalk_worker.engine.inputs.shapes import Json, full_usage, usage
from backtalk_worker.engine.outputs.batch import Update

KIND = "chat.completion"
FRAME_KIND = "chat.completion.chunk"


@dataclass(frozen=True, slots=True)
class ChatWriter:
    """One chat completion."""

    head: AnswerHead

    def first_frames(self) -> list[Json]:
        """One role frame per row."""
        return [self._role_frame(index, row) for index, row in enumerate(self.head.rows)]

    def frame(self, index: int, update: Update) -> Json:
        """One token; the last one says why it is the last."""
        row, token = self.head.rows[index], update.token
        with_logprobs = self.head.with_logprobs and token is not None
        choice: Json = {
            "index": index,
            "delta": {} if token is None else {"content": token.text},
            "logprobs": {"content": [self.head.scores.chat(token)]} if with_logprobs and token else None,
            "finish_reason": row.finish_reason,
        }
        if row.finish_reason is not None:
            choice["stop_reason"] = row.stop_reason
        choice["token_ids"] = ([] if token is None else [token.token]) if self.head.with_ids else None
        frame = self.head.frame(FRAME_KIND, [choice])
        if self.head.with_running_usage:
            frame["usage"] = self._row_usage(row)
        if row.finish_reason is not None and not self.head.with_usage:
            frame["system_fingerprint"] = FINGERPRINT
        return frame

    def last_frames(self) -> list[Json]:
        """The usage frame, where it was asked for."""
        if not self.head.with_usage:
            return []
        counts = usage(self.head.prompt_tokens, self.head.answer_tokens)
        return [{**self.head.frame(FRAME_KIND, []), "usage": counts, "system_fingerprint": FINGERPRINT}]

    def body(self) -> Json:
        """The whole completion."""
        head, first = self.head, self.head.rows[0]
        scores = first.prompt_scores
        return {
            **head.frame(KIND, [self._choice(index, row) for index, row in enumerate(head.rows)]),
            "service_tier": None,
            "system_fingerprint": FINGERPRINT,
            "usage": full_usage(head.prompt_tokens, head.answer_tokens),
            "prompt_logprobs": head.scores.prompt(scores) if scores is not None else None,
            "prompt_token_ids": list(first.prompt_ids) if head.with_ids else None,
            "prompt_text": None,
            "kv_transfer_params": None,
        }

    def _choice(self, index: int, row: RowAnswer) -> Json:
        logprobs = {"content": [self.head.scores.chat(t) for t in row.tokens]} if self.head.with_logprobs else None
        return {
            "index": index,
            "message": {
                "role": "assistant",
                "content": row.text,
                "refusal": None,
                "annotations": None,
                "audio": None,
                "function_call": None,
                "reasoning": None,
            },
            "logprobs": logprobs,
            "finish_reason": row.finish_reason,
            "stop_reason": row.stop_reason,
            "token_ids": row.token_ids if self.head.with_ids else None,
        }

    def _role_frame(self, index: int, row: RowAnswer) -> Json:
        choice: Json = {
            "index": index,
            "delta": {"role": "assistant", "content": ""},
            "logprobs": None,
            "finish_reason": None,
        }
        frame = self.head.frame(FRAME_KIND, [choice])
        if self.head.with_running_usage:
            frame["usage"] = {**usage(len(row.prompt_ids), 0), "completion_tokens_details": None}
        frame["prompt_token_ids"] = list(row.prompt_ids) if self.head.with_ids else None
        frame["prompt_text"] = None
        return frame

    @staticmethod
    def _row_usage(row: RowAnswer) -> Json:
        return {**usage(len(row.prompt_ids), len(row.tokens)), "completion_tokens_details": None}
