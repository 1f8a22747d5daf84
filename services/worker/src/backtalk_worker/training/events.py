"""Every event of the training worker that is logged or counted. Texts, token ids and turn ids never go through here."""

import logging
import os

from backtalk_worker.gen.backtalk.v1 import weights_pb2
from backtalk_worker.process.events import ProcessEvents
from backtalk_worker.training.errors import StepCancelledError, TrainingWorkerError

LOGGED = ("loss", "loss_opd", "loss_binary", "divergence", "kl_base", "kl_step", "step_scale", "tokens")


class TrainingEvents(ProcessEvents):
    """One method for each event."""

    def __init__(self, logger: logging.Logger) -> None:
        super().__init__(logger)
        self._steps = self.counter("backtalk_training_steps_total", "Steps by how they ended.", "outcome")
        self._last_failed = self.gauge(
            "backtalk_training_last_step_failed", "1 by the code of the newest step, where that failed.", "code"
        )
        self._tokens = self.counter("backtalk_training_tokens_total", "Answer tokens trained on.")
        self._busy = self.gauge("backtalk_training_busy_steps", "Steps that are running, 0 or 1.")
        self._refused = self.counter("backtalk_training_calls_refused_total", "Calls that ended in an error.", "code")
        # From 0, or the first of its kind would be no increase.
        for error in TrainingWorkerError.catalogue():
            self._refused.labels(error.code)
        self.blob_bytes = self.gauge("backtalk_training_blob_cache_bytes", "Bytes in the cache.")

    def certificate_read(self, ends_at: float) -> None:
        """Nothing reads it again: who renews it starts the process again, and is warned in time by this."""
        self.gauge(
            "backtalk_training_certificate_expiry_timestamp_seconds",
            "When the certificate that was read at the start ends, in seconds since 1970.",
        ).set(ends_at)

    def joined(self, rank: int, processes: int) -> None:
        """This process takes its part in the steps of several."""
        self.log("joined", {"rank": rank, "processes": processes, "pid": os.getpid()})

    def order_failed(self, error: Exception) -> None:
        """What rank 0 ordered was given up here, or in another process."""
        known = isinstance(error, TrainingWorkerError)
        code = error.code if known else "internal"
        self.log("order_failed", {"code": code}, logging.WARNING, None if known else error)

    def group_lost(self, error: TrainingWorkerError) -> None:
        """This process ends, for torchrun to start all of them anew."""
        self.log("group_lost", {"code": error.code}, logging.WARNING, error)

    def step_started(self, call: str, samples: int) -> None:
        """A step begins."""
        self._busy.set(1)
        self.log("step_started", {"call": call, "samples": samples})

    def step_finished(self, call: str, report: weights_pb2.TrainingReport) -> None:
        """A step's files are in the cache."""
        measured = report.measurements
        self._busy.set(0)
        self._steps.labels("finished").inc()
        self._last_failed.clear()
        self._tokens.inc(measured.get("tokens", 0.0))
        logged = {name: round(measured[name], 6) for name in LOGGED if name in measured}
        self.log("step_finished", {"call": call, "seconds": round(measured["seconds"], 2), **logged})

    def step_failed(self, call: str, error: Exception) -> None:
        """A step ended without files."""
        self._busy.set(0)
        known = isinstance(error, TrainingWorkerError)
        code = error.code if known else "internal"
        self._steps.labels(code).inc()
        self._last_failed.clear()
        if not isinstance(error, StepCancelledError):
            self._last_failed.labels(code).set(1)
        level, cause = (logging.WARNING, None) if known else (logging.ERROR, error)
        self.log("step_failed", {"call": call, "code": code}, level, cause)

    def call_refused(self, error: TrainingWorkerError) -> None:
        """A call was answered with an error."""
        self._refused.labels(error.code).inc()
