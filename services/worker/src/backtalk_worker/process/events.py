"""Log and metrics of a process. A service adds a class with one method for each event, which writes both together."""

import logging
from collections.abc import Mapping, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest


class ProcessEvents:
    """What every process logs, and short ways to make its metrics."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)

    def exposition(self) -> bytes:
        """All metrics as Prometheus text."""
        return generate_latest(self._registry)

    def started(self, seconds: float, **addresses: str) -> None:
        """The process takes requests; `seconds` since it began to load."""
        self.log("started", {"seconds": round(seconds, 2), **addresses})

    def stopping(self) -> None:
        """The process takes no new requests."""
        self.log("stopping")

    def log(
        self,
        event: str,
        fields: Mapping[str, object] | None = None,
        level: int = logging.INFO,
        cause: BaseException | None = None,
    ) -> None:
        """One line; events have names in snake_case."""
        self._logger.log(level, event, extra={"fields": fields or {}}, exc_info=cause)

    def counter(self, name: str, meaning: str, *labels: str, **bound: str) -> Counter:
        """Labels without values are given at each call; `bound` ones have one value for the whole process."""
        made = Counter(name, meaning, (*bound, *labels), registry=self._registry)
        return made.labels(**bound) if bound else made

    def gauge(self, name: str, meaning: str, *labels: str, **bound: str) -> Gauge:
        made = Gauge(name, meaning, (*bound, *labels), registry=self._registry)
        return made.labels(**bound) if bound else made

    def histogram(self, name: str, meaning: str, buckets: Sequence[float], **bound: str) -> Histogram:
        made = Histogram(name, meaning, tuple(bound), buckets=buckets, registry=self._registry)
        return made.labels(**bound) if bound else made
