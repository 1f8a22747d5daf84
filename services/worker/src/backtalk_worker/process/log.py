"""Logs as JSON lines on standard error, one object a line; fields come as `extra={"fields": {...}}`."""

import json
import logging
import traceback

CAUSES_MAX = 5
FRAMES_MAX = 30


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
        if record.exc_info and record.exc_info[1] is not None:
            line["error"] = written_error(record.exc_info[1])
        return json.dumps(line)


def written_error(error: BaseException) -> str:
    """Type and place of an error and of what it came of. Its words may quote what people and models wrote."""
    errors: list[str] = []
    each: BaseException | None = error
    while each is not None and len(errors) < CAUSES_MAX:
        frames = traceback.extract_tb(each.__traceback__, limit=-FRAMES_MAX)
        places = [f"  {frame.filename}:{frame.lineno} in {frame.name}" for frame in frames]
        errors.append("\n".join([type(each).__name__, *places]))
        each = each.__cause__ or (None if each.__suppress_context__ else each.__context__)
    return "\nof ".join(errors)


def create_logger(service: str, level: str) -> logging.Logger:
    """A logger of its own, apart from Python's root logger."""
    logger = logging.getLogger(f"backtalk.{service}")
    logger.setLevel(level.upper())
    logger.propagate = False
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines(service))
    logger.handlers = [handler]
    return logger
