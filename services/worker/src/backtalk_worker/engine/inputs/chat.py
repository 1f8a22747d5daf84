"""Writes chat completions in the shapes of vLLM's transcripts.

Where the request has tools, thoughts and calls are read out of the answer's text. Ids and logprobs stay those of all
tokens, also of those that no text is left of.
"""

from collections.abc import Sequence

from starlette.requests import Request

from backtalk_worker.engine.domain.request import Sampling
from backtalk_worker.engine.domain.text import TokenBytes
from backtalk_worker.engine.inputs.answer import AnswerWriter, Json, RowAnswer, usage
from backtalk_worker.engine.inputs.requests import ChatRequest
from backtalk_worker.engine.inputs.told import Told
from backtalk_worker.engine.outputs.batch import Update
from backtalk_worker.model.answers.reading import AnswerReader, CallFormat


class ChatWriter(AnswerWriter):
    """The role frame comes with the first token and carries the prompt's ids."""

    kind = "chat.completion"
    frame_kind = "chat.completion.chunk"
    id_prefix = "chatcmpl"
    usage_details = {"completion_tokens_details": None}  # noqa: RUF012

    def __init__(
        self,
        http: Request,
        request: ChatRequest,
        prompts: Sequence[Sequence[int]],
        sampling: Sampling,
        tokens: TokenBytes,
        readers: Sequence[AnswerReader] | None,
        calls: CallFormat | None,
    ) -> None:
        super().__init__(http, request, prompts, sampling, tokens)
        has_short_ids = calls is not None and calls.has_short_ids
        self._told = None if readers is None else [Told(reader, has_short_ids) for reader in readers]

    def take(self, index: int, update: Update) -> None:
        """Adds what one step brought to a row, and to what it tells."""
        super().take(index, update)
        if self._told is not None:
            row = self.rows[index]
            self._told[index].take(update.text, is_last=row.finish_reason is not None)
            if row.finish_reason == "stop" and self._told[index].calls:
                row.finish_reason = "tool_calls"

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

    def _frame_choices(self, index: int, row: RowAnswer, update: Update) -> list[Json]:
        """The first carries id and logprob, the last one of the answer why it ended."""
        if self._told is not None:
            deltas = self._told[index].deltas(is_last=row.finish_reason is not None)
        else:
            deltas: list[Json] = [{"content": update.text} if update.token or update.text else {}]
        choices: list[Json] = []
        for at, delta in enumerate(deltas):
            own = update.token if at == 0 else None
            choice: Json = {
                "index": index,
                "delta": delta,
                "logprobs": {"content": [self.scores.chat(own)]} if self._with_logprobs and own else None,
                "finish_reason": None,
            }
            if row.finish_reason is not None and at == len(deltas) - 1:
                choice["finish_reason"] = row.finish_reason
                choice["stop_reason"] = row.stop_reason
            choice["token_ids"] = ([] if own is None else [own.token]) if self._with_ids else None
            choices.append(choice)
        return choices

    def _choice(self, index: int, row: RowAnswer) -> Json:
        empty = dict.fromkeys(("refusal", "annotations", "audio", "function_call", "reasoning"))
        message: Json = {"role": "assistant", "content": row.text, **empty}
        if self._told is not None:
            message.update(self._told[index].message())
        return {
            "index": index,
            "message": message,
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
