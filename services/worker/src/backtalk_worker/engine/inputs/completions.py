"""Writes text completions in the shapes of vLLM's transcripts."""

from backtalk_worker.engine.inputs.answer import AnswerWriter, Json, RowAnswer
from backtalk_worker.engine.outputs.batch import Update


class CompletionWriter(AnswerWriter):
    """Of one prompt or several; a row's first frame carries its prompt's ids."""

    kind = frame_kind = "text_completion"
    id_prefix = "cmpl"

    def _frame_choices(self, index: int, row: RowAnswer, update: Update) -> list[Json]:
        token, logprobs = update.token, None
        if self._with_logprobs and token is not None:
            logprobs = self.scores.completion([token], row.characters)
            row.characters += len(token.token_text)
        choice: Json = {
            "index": index,
            "text": update.text,
            "logprobs": logprobs,
            "finish_reason": row.finish_reason,
            "stop_reason": row.stop_reason,
            "prompt_token_ids": list(row.prompt_ids) if self._with_ids and len(row.tokens) <= 1 else None,
            "token_ids": ([] if token is None else [token.token]) if self._with_ids else None,
        }
        return [choice]

    def _choice(self, index: int, row: RowAnswer) -> Json:
        return {
            "index": index,
            "text": row.text,
            "logprobs": self.scores.completion(row.tokens, 0) if self._with_logprobs else None,
            "finish_reason": row.finish_reason,
            "stop_reason": row.stop_reason,
            "token_ids": row.token_ids if self._with_ids else None,
            "prompt_logprobs": self.scores.prompt(row.prompt_scores),
            "prompt_token_ids": list(row.prompt_ids) if self._with_ids else None,
        }
