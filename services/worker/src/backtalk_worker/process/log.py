"""Logs as JSON lines on standard error, one object a line; fields come as `extra={"fields": {...}}`."""

import json
import logging


class JsonLines(logging.Formatter):
    """Formats one record for one service."""

    def __init__(self, service: str) -> None:
        super().__init__()
        self._service = service

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "level": record.levelname.lower(),
            "time": int(record.created * 1000),
            "service": self._service,
            "msg": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line)


def create_logger(service: str, level: str) -> logging.Logger:
    """A logger of its own, apart from Python's root logger."""
    logger = logging.getLogger(f"backtalk.{service}")
    logger.setLevel(level.upper())
    logger.propagate = False
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines(service))
    logger.handlers = [handler]
    return logger
