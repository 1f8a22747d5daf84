"""Every event of the engine that is logged or counted. vLLM's names are used where the meaning is vLLM's.

Text of prompts and answers, ids of requests and of people never go through here.
"""

import logging
import time

from backtalk_worker.engine.errors import EngineError
from backtalk_worker.process.events import ProcessEvents

FIRST_TOKEN_BUCKETS_S = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class EngineEvents(ProcessEvents):
    """One method for each event."""

    def __init__(self, base_name: str, kv_tokens_max: int, logger: logging.Logger) -> None:
        super().__init__(logger)
        self._base_name = base_name
        self._kv_tokens_max = kv_tokens_max
        base = {"model_name": base_name}
        self._running = self.gauge("vllm:num_requests_running", "Rows that are being computed.", **base)
        self._waiting = self.gauge("vllm:num_requests_waiting", "Rows that wait to be computed.", **base)
        self._kv_usage = self.gauge("vllm:kv_cache_usage_perc", "Share of the bound on keys and values.", **base)
        self._prompt_tokens = self.counter("vllm:prompt_tokens_total", "Prompt tokens taken in.", **base)
        self._cached_tokens = self.counter("vllm:prompt_tokens_cached_total", "Those whose keys were copied.", **base)
        self._answer_tokens = self.counter("vllm:generation_tokens_total", "Tokens generated.", **base)
        self._finished = self.counter("vllm:request_success_total", "Rows that ended.", "model_name", "finished_reason")
        self._first_token = self.histogram(
            "vllm:time_to_first_token_seconds", "From request to its first token.", FIRST_TOKEN_BUCKETS_S, **base
        )
        self._lora_info = self.gauge(
            "vllm:lora_requests_info", "Loaded adapters; the value is the time of a change.", "running_lora_adapters"
        )
        self._preempted = self.counter(
            "vllm:num_preemptions_total", "Rows sent back to the queue for lack of memory.", **base
        )
        self._errors = self.counter("backtalk_engine_errors_total", "Requests answered with an error.", "code")
        # From 0, or the first of its kind would be no increase.
        for error in EngineError.catalogue():
            self._errors.labels(error.code)
        self._adapters = self.gauge("backtalk_engine_adapters", "Adapters that are loaded.")

    def load(self, running: int, waiting: int, kv_tokens: int) -> None:
        """What is computed and held after a step."""
        self._running.set(running)
        self._waiting.set(waiting)
        self._kv_usage.set(min(1.0, kv_tokens / self._kv_tokens_max))

    def stepped(self, tokens: int) -> None:
        """One step was computed."""
        self._answer_tokens.inc(tokens)

    def prefix_looked_up(self, prompt_tokens: int, copied: int) -> None:
        """A prompt is about to be computed, but for what could be copied."""
        self._prompt_tokens.inc(prompt_tokens)
        self._cached_tokens.inc(copied)

    def first_token(self, seconds: float) -> None:
        """The caller of a request gets its first token."""
        self._first_token.observe(seconds)

    def finished(self, reason: str) -> None:
        """A row ended."""
        self._finished.labels(self._base_name, reason).inc()

    def preempted(self) -> None:
        """A row went back to the queue to make room for the keys of others."""
        self._preempted.inc()
        self.log("row_preempted", level=logging.WARNING)

    def answered_with_error(self, code: str, status: int, cause: BaseException | None) -> None:
        """A request ended in an error."""
        self._errors.labels(code).inc()
        if status >= 500:
            self.log("request_failed", {"code": code}, logging.ERROR, cause)

    def adapter_loaded(self, name: str, rank: int, names: list[str]) -> None:
        """An adapter takes requests."""
        self._adapters_changed(names)
        self.log("adapter_loaded", {"adapter": name, "rank": rank})

    def adapter_unloaded(self, name: str, names: list[str]) -> None:
        """An adapter takes no new requests."""
        self._adapters_changed(names)
        self.log("adapter_unloaded", {"adapter": name})

    def loop_failed(self, cause: BaseException) -> None:
        """The computing thread died; the process ends."""
        self.log("loop_failed", level=logging.ERROR, cause=cause)

    def _adapters_changed(self, names: list[str]) -> None:
        self._adapters.set(len(names))
        self._lora_info.clear()
        self._lora_info.labels(",".join(names)).set(time.time())
