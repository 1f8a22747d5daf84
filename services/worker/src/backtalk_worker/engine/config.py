"""The engine's settings. Token counts are ids, times are seconds."""

from pathlib import Path
from typing import Self

from pydantic import SecretStr, model_validator

from backtalk_worker.engine.domain.request import LogprobsMode
from backtalk_worker.model.location import BASE_MODEL_NAME, default_model_dir
from backtalk_worker.model.quantization import Quantization
from backtalk_worker.process.config import LogLevel, ProcessConfig, Secret, setting


class EngineConfig(ProcessConfig, cli_prog_name="python -m backtalk_worker.engine"):
    """Serves a model and its adapters."""

    host: str = setting("BACKTALK_ENGINE_HOST", "127.0.0.1", "address to listen on")
    port: int = setting("BACKTALK_ENGINE_PORT", 30030, "port to listen on; 0 takes a free one", ge=0, le=65535)
    model_dir: Path = setting("BACKTALK_ENGINE_MODEL_DIR", default_model_dir(), "folder of the base model")
    model_name: str = setting("BACKTALK_ENGINE_MODEL_NAME", BASE_MODEL_NAME, "name the base model is served under")
    quantization: Quantization = setting(
        "BACKTALK_ENGINE_QUANTIZATION", "none", "of the base's linear layers: none, or 4 bits a number"
    )
    length_max: int = setting(
        "BACKTALK_ENGINE_LENGTH_MAX", 0, "tokens of prompt and answer together; 0 = the model's", ge=0
    )
    rows_max: int = setting("BACKTALK_ENGINE_ROWS_MAX", 16, "rows computed together", ge=1, le=256)
    waiting_max: int = setting("BACKTALK_ENGINE_WAITING_MAX", 64, "rows that may wait; one more gets 503", ge=0)
    kv_tokens_max: int = setting(
        "BACKTALK_ENGINE_KV_TOKENS_MAX", 16384, "positions with keys and values in memory", ge=64
    )
    prefix_tokens_max: int = setting(
        "BACKTALK_ENGINE_PREFIX_TOKENS_MAX", 6144, "of these, remembered from ended rows", ge=0
    )
    prefill_beside_answers: int = setting(
        "BACKTALK_ENGINE_PREFILL_BESIDE_ANSWERS", 64, "prompt tokens a step computes while rows are answering", ge=1
    )
    prefill_alone: int = setting("BACKTALK_ENGINE_PREFILL_ALONE", 256, "prompt tokens a step computes otherwise", ge=1)
    logprobs_mode: LogprobsMode = setting(
        "BACKTALK_ENGINE_LOGPROBS_MODE", "processed_logprobs", "of the distribution drawn from, or of the model's own"
    )
    adapters_max: int = setting("BACKTALK_ENGINE_ADAPTERS_MAX", 16, "adapters loaded at once", ge=0)
    adapter_rank_max: int = setting("BACKTALK_ENGINE_ADAPTER_RANK_MAX", 64, "largest rank of an adapter", ge=1)
    body_bytes_max: int = setting("BACKTALK_ENGINE_BODY_BYTES_MAX", 16 * 1024**2, "largest request body", ge=1024)
    shutdown_seconds: float = setting(
        "BACKTALK_ENGINE_SHUTDOWN_SECONDS", 5.0, "time for answers to end after SIGTERM", ge=0, allow_inf_nan=False
    )
    threads: int = setting("BACKTALK_ENGINE_THREADS", 1, "threads of torch", ge=1, le=64)
    key: Secret = setting(
        "BACKTALK_ENGINE_KEY", SecretStr(""), "key that callers must give, but for health and metrics; empty: none"
    )
    judge_key: Secret = setting(
        "BACKTALK_ENGINE_JUDGE_KEY",
        SecretStr(""),
        "key of judges that share this engine: it asks, and neither loads nor unloads; empty: there is none",
    )
    adapter_dir: Path | None = setting(
        "BACKTALK_ADAPTER_DIR", None, "folder that adapters are loaded from, as the loader has it; empty: any"
    )
    log_level: LogLevel = setting("BACKTALK_LOG_LEVEL", "info", "least level that is logged")

    @model_validator(mode="after")
    def judges_are_not_alone(self) -> Self:
        """Without the engine's key all routes are open, to judges as to others."""
        if self.judge_key.get_secret_value() and not self.key.get_secret_value():
            raise ValueError("BACKTALK_ENGINE_JUDGE_KEY opens nothing by itself: set BACKTALK_ENGINE_KEY, too")
        return self
