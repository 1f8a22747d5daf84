"""Writes chat completions in the shapes of vLLM's transcripts."""

from backtalk_worker.engine.domain.request import Token
from backtalk_worker.engine.inputs.answer import AnswerWriter, Json, RowAnswer, usage


class ChatWriter(AnswerWriter):
    """The role frame comes with the first token and carries the prompt's ids."""

    kind = "chat.completion"
    frame_kind = "chat.completion.chunk"
    id_prefix = "chatcmpl"
    usage_details = {"completion_tokens_details": None}  # noqa: RUF012

    def first_frames(self) -> list[Json]:
        """One role frame per row."""
        return [self._role_frame(index, row) for index, row in enumerate(self.rows)]

    def _role_frame(self, index: int, row: RowAnswer) -> Json:
        delta = {"role": "assistant", "content": ""}
        choice: Json = {"index": index, "delta": delta, "logprobs": None, "finish_reason": None}
        frame = self._outer(self.frame_kind, [choice])
        if self._with_running_usage:
            frame["usage"] = {**usage(len(row.prompt_ids), 0), **self.usage_details}
        frame["prompt_token_ids"] = list(row.prompt_ids) if self._with_ids else None
        frame["prompt_text"] = None
        return frame

    def _frame_choice(self, index: int, row: RowAnswer, token: Token | None) -> Json:
        choice: Json = {
            "index": index,
            "delta": {} if token is None else {"content": token.text},
            "logprobs": {"content": [self.scores.chat(token)]} if self._with_logprobs and token else None,
            "finish_reason": row.finish_reason,
        }
        if row.finish_reason is not None:
            choice["stop_reason"] = row.stop_reason
        choice["token_ids"] = ([] if token is None else [token.token]) if self._with_ids else None
        return choice

    def _choice(self, index: int, row: RowAnswer) -> Json:
        empty = dict.fromkeys(("refusal", "annotations", "audio", "function_call", "reasoning"))
        return {
            "index": index,
            "message": {"role": "assistant", "content": row.text, **empty},
            "logprobs": {"content": [self.scores.chat(t) for t in row.tokens]} if self._with_logprobs else None,
            "finish_reason": row.finish_reason,
            "stop_reason": row.stop_reason,
            "token_ids": row.token_ids if self._with_ids else None,
        }

    def _body_details(self) -> Json:
        first = self.rows[0]
        return {
            "prompt_logprobs": self.scores.prompt(first.prompt_scores),
            "prompt_token_ids": list(first.prompt_ids) if self._with_ids else None,
            "prompt_text": None,
        }
