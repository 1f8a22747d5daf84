"""The engine's settings: environment variables and command-line flags in, one frozen EngineConfig out.

A bad value stops the start with one line that names the variable. Nothing else in the engine reads the environment.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast, get_args

from backtalk_worker.engine.domain.sampling import LogprobsMode
from backtalk_worker.model.location import BASE_MODEL_NAME, default_model_dir


class ConfigError(Exception):
    """One setting has a bad value; its words name the variable and what is allowed."""


@dataclass(frozen=True)
class EngineConfig:
    """Everything the engine can be told. Token counts are ids, times are seconds."""

    host: str = "127.0.0.1"
    port: int = 30030
    model_dir: Path = Path()
    model_name: str = BASE_MODEL_NAME
    length_max: int = 0
    rows_max: int = 16
    waiting_max: int = 64
    kv_tokens_max: int = 16384
    prefix_tokens_max: int = 6144
    prefill_beside_answers: int = 64
    prefill_alone: int = 256
    logprobs_mode: LogprobsMode = "processed_logprobs"
    adapters_max: int = 16
    adapter_rank_max: int = 64
    body_bytes_max: int = 16 * 1024 * 1024
    shutdown_seconds: float = 5.0
    threads: int = 1
    log_level: str = "info"


@dataclass(frozen=True)
class Setting:
    """One setting: where it comes from, how it is read, and what it is for."""

    field: str
    variable: str
    read: Callable[[str], Any]
    description: str

    @property
    def flag(self) -> str:
        return "--" + self.variable.removeprefix("BACKTALK_").removeprefix("ENGINE_").lower().replace("_", "-")


def _integer(minimum: int, maximum: int = 2**31) -> Callable[[str], int]:
    def read(raw: str) -> int:
        value = int(raw)
        if not minimum <= value <= maximum:
            raise ValueError(f"must be from {minimum} to {maximum}")
        return value

    return read


def _seconds(raw: str) -> float:
    value = float(raw)
    if value < 0:
        raise ValueError("must not be negative")
    return value


def _one_of(*allowed: str) -> Callable[[str], str]:
    def read(raw: str) -> str:
        if raw not in allowed:
            raise ValueError(f"must be one of {', '.join(allowed)}")
        return raw

    return read


SETTINGS: tuple[Setting, ...] = (
    Setting("host", "BACKTALK_ENGINE_HOST", str, "address to listen on"),
    Setting("port", "BACKTALK_ENGINE_PORT", _integer(0, 65535), "port to listen on; 0 takes a free one"),
    Setting("model_dir", "BACKTALK_ENGINE_MODEL_DIR", Path, "folder of the base model"),
    Setting("model_name", "BACKTALK_ENGINE_MODEL_NAME", str, "name the base model is served under"),
    Setting(
        "length_max", "BACKTALK_ENGINE_LENGTH_MAX", _integer(0), "tokens of prompt and answer together; 0 = the model's"
    ),
    Setting("rows_max", "BACKTALK_ENGINE_ROWS_MAX", _integer(1, 256), "rows computed together"),
    Setting("waiting_max", "BACKTALK_ENGINE_WAITING_MAX", _integer(0), "rows that may wait; one more gets 503"),
    Setting("kv_tokens_max", "BACKTALK_ENGINE_KV_TOKENS_MAX", _integer(64), "positions with keys and values in memory"),
    Setting(
        "prefix_tokens_max", "BACKTALK_ENGINE_PREFIX_TOKENS_MAX", _integer(0), "of these, remembered from ended rows"
    ),
    Setting(
        "prefill_beside_answers",
        "BACKTALK_ENGINE_PREFILL_BESIDE_ANSWERS",
        _integer(1),
        "prompt tokens a step computes while rows are answering",
    ),
    Setting("prefill_alone", "BACKTALK_ENGINE_PREFILL_ALONE", _integer(1), "prompt tokens a step computes otherwise"),
    Setting(
        "logprobs_mode",
        "BACKTALK_ENGINE_LOGPROBS_MODE",
        _one_of(*get_args(LogprobsMode)),
        "logprobs of the distribution drawn from, or of the model's own",
    ),
    Setting("adapters_max", "BACKTALK_ENGINE_ADAPTERS_MAX", _integer(0), "adapters loaded at once"),
    Setting("adapter_rank_max", "BACKTALK_ENGINE_ADAPTER_RANK_MAX", _integer(1), "largest rank of an adapter"),
    Setting("body_bytes_max", "BACKTALK_ENGINE_BODY_BYTES_MAX", _integer(1024), "largest request body"),
    Setting("shutdown_seconds", "BACKTALK_ENGINE_SHUTDOWN_SECONDS", _seconds, "time for answers to end after SIGTERM"),
    Setting("threads", "BACKTALK_ENGINE_THREADS", _integer(1, 64), "threads of torch"),
    Setting(
        "log_level", "BACKTALK_LOG_LEVEL", _one_of("debug", "info", "warning", "error"), "least level that is logged"
    ),
)


def read_config(environment: Mapping[str, str], arguments: Sequence[str]) -> EngineConfig:
    """Defaults, then the environment, then flags; every bad value is named in one ConfigError."""
    defaults = EngineConfig(model_dir=default_model_dir())
    parser = argparse.ArgumentParser(
        prog="python -m backtalk_worker.engine", description="Serves a model and its adapters."
    )
    for setting in SETTINGS:
        shown = f"{setting.description} ({setting.variable}, default {getattr(defaults, setting.field)})"
        parser.add_argument(setting.flag, dest=setting.field, metavar="VALUE", help=shown)
    flags = vars(parser.parse_args(arguments))
    values: dict[str, Any] = {"model_dir": defaults.model_dir}
    problems: list[str] = []
    for setting in SETTINGS:
        raw = cast(str | None, flags[setting.field]) or environment.get(setting.variable) or None
        if raw is None:
            continue
        try:
            values[setting.field] = setting.read(raw)
        except ValueError as error:
            problems.append(f"{setting.variable}: {error}")
    if problems:
        raise ConfigError("; ".join(problems))
    return EngineConfig(**values)
