"""Every event of the engine that is logged or counted: one method each, which writes log and metrics together.

In: what happened, in numbers and names of versions. Out: log lines and Prometheus metrics.
Text of prompts and answers, ids of requests and of people never go through here.
"""

import json
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

STEP_BUCKETS_S = (0.01, 0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
FIRST_TOKEN_BUCKETS_S = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


@dataclass(slots=True)
class StepFigures:
    """Filled in by whoever runs the step."""

    tokens: int = 0


class JsonLines(logging.Formatter):
    """One JSON object a line, with the fields given as `extra={'fields': ...}`."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "level": record.levelname.lower(),
            "time": int(record.created * 1000),
            "service": "engine",
            "msg": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line)


def create_logger(level: str) -> logging.Logger:
    """A logger that writes JSON lines to standard error."""
    logger = logging.getLogger("backtalk.engine")
    logger.setLevel(level.upper())
    logger.propagate = False
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    logger.handlers = [handler]
    return logger


class Events:
    """The engine's log and metrics. vLLM's names are used where the meaning is vLLM's."""

    def __init__(self, base_name: str, kv_tokens_max: int, logger: logging.Logger) -> None:
        self._logger = logger
        self._kv_tokens_max = kv_tokens_max
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._base_name = base_name
        self._running = self._gauge("vllm:num_requests_running", "Rows that are being computed.")
        self._waiting = self._gauge("vllm:num_requests_waiting", "Rows that wait for a place.")
        self._kv_usage = self._gauge(
            "vllm:kv_cache_usage_perc", "Share of the bound on keys and values in use, 0 to 1."
        )
        self._prompt_tokens = self._counter("vllm:prompt_tokens_total", "Prompt tokens taken in.")
        self._cached_tokens = self._counter("vllm:prompt_tokens_cached_total", "Prompt tokens whose keys were copied.")
        self._answer_tokens = self._counter("vllm:generation_tokens_total", "Tokens generated.")
        self._finished = Counter(
            "vllm:request_success_total", "Rows that ended.", ("model_name", "finished_reason"), registry=self._registry
        )
        self._first_token = Histogram(
            "vllm:time_to_first_token_seconds",
            "From request to its first token.",
            ("model_name",),
            buckets=FIRST_TOKEN_BUCKETS_S,
            registry=self._registry,
        ).labels(base_name)
        self._lora_info = Gauge(
            "vllm:lora_requests_info",
            "Adapters that are loaded, by name; the value is the time of the last change.",
            ("running_lora_adapters",),
            registry=self._registry,
        )
        self._step_seconds = Histogram(
            "backtalk_engine_step_seconds",
            "One forward pass and its draws.",
            buckets=STEP_BUCKETS_S,
            registry=self._registry,
        )
        self._refused = Counter(
            "backtalk_engine_refused_total", "Requests refused because the queue was full.", registry=self._registry
        )
        self._preempted = Counter(
            "backtalk_engine_preempted_total",
            "Rows sent back to the queue for lack of memory.",
            registry=self._registry,
        )
        self._errors = Counter(
            "backtalk_engine_errors_total", "Requests answered with an error.", ("code",), registry=self._registry
        )
        self._adapters = Gauge("backtalk_engine_adapters", "Adapters that are loaded.", registry=self._registry)

    def _gauge(self, name: str, words: str) -> Gauge:
        return Gauge(name, words, ("model_name",), registry=self._registry).labels(self._base_name)

    def _counter(self, name: str, words: str) -> Counter:
        return Counter(name, words, ("model_name",), registry=self._registry).labels(self._base_name)

    def exposition(self) -> bytes:
        """All metrics as Prometheus text."""
        return generate_latest(self._registry)

    def started(self, address: str, seconds: float) -> None:
        """The engine takes requests."""
        self._log(logging.INFO, "engine started", {"address": address, "seconds": round(seconds, 2)})

    def stopping(self) -> None:
        """The engine takes no new requests."""
        self._log(logging.INFO, "engine stopping", {})

    def load(self, running: int, waiting: int, kv_tokens: int) -> None:
        """What is in hand after a step."""
        self._running.set(running)
        self._waiting.set(waiting)
        self._kv_usage.set(min(1.0, kv_tokens / self._kv_tokens_max))

    @contextmanager
    def step(self) -> Iterator[StepFigures]:
        """Around one step."""
        figures = StepFigures()
        started = time.perf_counter()
        yield figures
        self._step_seconds.observe(time.perf_counter() - started)
        self._answer_tokens.inc(figures.tokens)

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
        """A row went back to the queue to make room."""
        self._preempted.inc()
        self._log(logging.WARNING, "row sent back to the queue: no room for its keys", {})

    def refused(self) -> None:
        """A request came while the queue was full."""
        self._refused.inc()

    def answered_with_error(self, code: str, status: int, cause: BaseException | None) -> None:
        """A request ended in an error."""
        self._errors.labels(code).inc()
        if status >= 500:
            self._log(logging.ERROR, "request failed", {"code": code}, cause)

    def adapter_loaded(self, name: str, rank: int, names: list[str]) -> None:
        """An adapter takes requests."""
        self._adapters_changed(names)
        self._log(logging.INFO, "adapter loaded", {"adapter": name, "rank": rank})

    def adapter_unloaded(self, name: str, names: list[str]) -> None:
        """An adapter takes no new requests."""
        self._adapters_changed(names)
        self._log(logging.INFO, "adapter unloaded", {"adapter": name})

    def loop_failed(self, cause: BaseException) -> None:
        """The computing thread died; the process ends."""
        self._log(logging.ERROR, "generation loop failed", {}, cause)

    def _adapters_changed(self, names: list[str]) -> None:
        self._adapters.set(len(names))
        self._lora_info.clear()
        self._lora_info.labels(",".join(names)).set(time.time())

    def _log(self, level: int, words: str, fields: dict[str, object], cause: BaseException | None = None) -> None:
        self._logger.log(level, words, extra={"fields": fields}, exc_info=cause)
