"""Every event of the training worker that is logged or counted: one method each, which writes log and metrics together.

In: what happened, in numbers, codes and call ids. Out: log lines and Prometheus metrics. Texts, token ids and turn ids
never go through here.
"""

import logging

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

from backtalk_worker.gen.backtalk.v1 import weights_pb2
from backtalk_worker.training.errors import TrainingWorkerError

STEP_BUCKETS_S = (1, 2, 5, 10, 20, 40, 80, 160, 320, 640)
LOGGED = ("loss", "loss_opd", "loss_binary", "divergence", "kl_base", "kl_step", "step_scale", "tokens")


class Events:
    """The worker's log and metrics."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._steps = Counter(
            "backtalk_training_steps_total", "Steps by how they ended.", ("outcome",), registry=self._registry
        )
        self._step_seconds = Histogram(
            "backtalk_training_step_seconds", "Whole steps.", buckets=STEP_BUCKETS_S, registry=self._registry
        )
        self._tokens = Counter("backtalk_training_tokens_total", "Answer tokens trained on.", registry=self._registry)
        self._samples = Counter(
            "backtalk_training_samples_total",
            "Samples by why they were dropped.",
            ("dropped",),
            registry=self._registry,
        )
        self._busy = Gauge("backtalk_training_busy_steps", "Steps in hand, 0 or 1.", registry=self._registry)
        self._refused = Counter(
            "backtalk_training_calls_refused_total", "Calls that ended in an error.", ("code",), registry=self._registry
        )
        self._blob_bytes = Gauge("backtalk_training_blob_cache_bytes", "Bytes in the cache.", registry=self._registry)

    def exposition(self, blob_bytes: int) -> bytes:
        """All metrics as Prometheus text."""
        self._blob_bytes.set(blob_bytes)
        return generate_latest(self._registry)

    def started(self, address: str, health: str, seconds: float) -> None:
        """The worker takes calls."""
        fields = {"address": address, "health": health, "seconds": round(seconds, 2)}
        self._log(logging.INFO, "training worker started", fields)

    def stopping(self) -> None:
        """The worker takes no new calls."""
        self._log(logging.INFO, "training worker stopping", {})

    def step_started(self, call: str, samples: int) -> None:
        """A step begins."""
        self._busy.set(1)
        self._log(logging.INFO, "step started", {"call": call, "samples": samples})

    def step_finished(self, call: str, report: weights_pb2.TrainingReport) -> None:
        """A step's files are in the cache."""
        measured = report.measurements
        self._busy.set(0)
        self._steps.labels("finished").inc()
        self._step_seconds.observe(measured["seconds"])
        self._tokens.inc(measured.get("tokens", 0.0))
        for sample in report.samples:
            self._samples.labels(sample.dropped or "none").inc()
        shown = {name: round(measured[name], 6) for name in LOGGED if name in measured}
        self._log(logging.INFO, "step finished", {"call": call, "seconds": round(measured["seconds"], 2), **shown})

    def step_failed(self, call: str, error: Exception) -> None:
        """A step ended without files."""
        self._busy.set(0)
        code = error.code if isinstance(error, TrainingWorkerError) else "internal"
        self._steps.labels(code).inc()
        cause = None if isinstance(error, TrainingWorkerError) else error
        self._log(logging.ERROR if cause else logging.WARNING, "step failed", {"call": call, "code": code}, cause)

    def call_refused(self, error: TrainingWorkerError) -> None:
        """A caller was told of an error."""
        self._refused.labels(error.code).inc()

    def _log(self, level: int, words: str, fields: dict[str, object], cause: BaseException | None = None) -> None:
        self._logger.log(level, words, extra={"fields": fields}, exc_info=cause)
