"""The training worker's settings; every one has a default that suits one machine."""

import os
import tempfile
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, SecretStr, model_validator

from backtalk_worker.model.location import BASE_MODEL_NAME, default_model_dir
from backtalk_worker.model.quantization import Quantization
from backtalk_worker.process.config import LogLevel, ProcessConfig, Secret, host_and_port, setting


def _checked(address: str) -> str:
    host_and_port(address)
    return address


Address = Annotated[str, AfterValidator(_checked)]
Device = Literal["cpu", "cuda"]
Backend = Literal["torch", "tinker"]
DtypeName = Literal["float32", "bfloat16", "float64"]


def dtype_of_the_device(known: dict[str, Any]) -> DtypeName:
    return "float32" if known["device"] == "cpu" and known["backend"] == "torch" else "bfloat16"


def nice_of_the_device(known: dict[str, Any]) -> int:
    return 10 if known["device"] == "cpu" else 0


def at_once_on_the_device(known: dict[str, Any]) -> int:
    """So many that all processes together have a thread for each core."""
    cores = (os.cpu_count() or 1) // (known["threads"] * known["processes"])
    return max(1, cores) if known["device"] == "cpu" else 1


def folder_for_temporary_files() -> Path:
    return Path(tempfile.gettempdir()) / "backtalk-training-blobs"


class TrainingWorkerConfig(ProcessConfig, cli_prog_name="python -m backtalk_worker.training"):
    """Takes training steps, one at a time."""

    address: Address = setting(
        "BACKTALK_GRPC_ADDRESS", "127.0.0.1:30026", "address of the gRPC server; port 0 takes a free one"
    )
    health_address: Address = setting(
        "BACKTALK_HEALTH_ADDRESS", "127.0.0.1:30016", "address of /livez, /readyz and /metrics"
    )
    model_dir: Path = setting("BACKTALK_MODEL_DIR", default_model_dir(), "folder of the base model")
    base_model: str = setting(
        "BACKTALK_BASE_MODEL", BASE_MODEL_NAME, "name under which engines serve the base", pattern=r"^\P{C}{1,200}$"
    )
    teacher_model_dir: Path | None = setting(
        "BACKTALK_TEACHER_MODEL_DIR", None, "folder of another model that is shown the hints, for the teacher `other`"
    )
    backend: Backend = setting(
        "BACKTALK_TRAINING_BACKEND", "torch", "what trains: this process, or a service with Tinker's API"
    )
    tinker_url: str | None = setting(
        "BACKTALK_TINKER_URL", None, "address of that service", pattern=r"^https?://[^\s/]+(/\S*)?$"
    )
    tinker_key: Secret = setting("BACKTALK_TINKER_KEY", SecretStr(""), "key of that service")
    tinker_model: str | None = setting(
        "BACKTALK_TINKER_MODEL", None, "that service's name of the base; empty: its only model's", max_length=200
    )
    tinker_loss: Literal["sum", "mean"] = setting(
        "BACKTALK_TINKER_LOSS", "sum", "what that service makes of the losses of tokens: Tinker sums, SkyRL takes means"
    )
    tinker_call_seconds: float = setting(
        "BACKTALK_TINKER_CALL_SECONDS", 900, "how long that service may take for one call", ge=1, le=86400
    )
    device: Device = setting("BACKTALK_DEVICE", "cpu", "where the model computes")
    dtype: DtypeName = setting("BACKTALK_DTYPE", dtype_of_the_device, "of the base")
    quantization: Quantization = setting(
        "BACKTALK_QUANTIZATION", "none", "of the base's linear layers, as engines serve it: none, or 4 bits a number"
    )
    packing: Literal["on", "off"] = setting(
        "BACKTALK_TRAINING_PACKING", "off", "whether short samples lie end to end, in place of padding"
    )
    threads: int = setting("BACKTALK_THREADS", 1, "threads of torch", ge=1, le=1024)
    processes: int = setting(
        "BACKTALK_TRAINING_PROCESSES",
        1,
        "processes that take one step together, each on a device of its own",
        ge=1,
        le=64,
    )
    at_once: int = setting(
        "BACKTALK_MICRO_BATCHES_AT_ONCE",
        at_once_on_the_device,
        "computed side by side, where memory allows",
        ge=1,
        le=1024,
    )
    group_seconds: float = setting(
        "BACKTALK_TRAINING_GROUP_SECONDS", 900, "how long one of them may keep the others waiting", ge=1, le=86400
    )
    sharding: Literal["on", "off"] = setting(
        "BACKTALK_TRAINING_SHARDING",
        "off",
        "whether each process holds a shard of the base, not all",
    )
    nice: int = setting("BACKTALK_NICE", nice_of_the_device, "how far it yields to other processes", ge=0, le=19)
    blob_cache_dir: Path = setting(
        "BACKTALK_BLOB_CACHE_DIR", folder_for_temporary_files, "cache of adapters and optimiser states"
    )
    blob_cache_bytes: int = setting(
        "BACKTALK_BLOB_CACHE_BYTES", 2 * 1024**3, "bound of the cache", ge=1024**2, le=1024**5
    )
    trainer_token: Secret = setting(
        "BACKTALK_TRAINER_TO_TRAINING_TOKEN",
        SecretStr(""),
        "secret that the trainer gives with each call; empty: none",
    )
    tls_ca: Path | None = setting(
        "BACKTALK_TLS_CA", None, "certificates that callers' certificates must be signed by, as PEM; empty: no TLS"
    )
    tls_cert: Path | None = setting("BACKTALK_TLS_CERT", None, "the gRPC server's certificate, as PEM")
    tls_key: Path | None = setting("BACKTALK_TLS_KEY", None, "the key of that certificate, as PEM")
    log_level: LogLevel = setting("BACKTALK_LOG_LEVEL", "info", "least level that is logged")

    @model_validator(mode="after")
    def tls_is_whole(self) -> Self:
        """With one of the three missing, connections would be in clear without a word."""
        files = (self.tls_ca, self.tls_cert, self.tls_key)
        if any(files) and not all(files):
            raise ValueError("set BACKTALK_TLS_CA, BACKTALK_TLS_CERT and BACKTALK_TLS_KEY together, or none of them")
        return self

    @model_validator(mode="after")
    def service_is_named(self) -> Self:
        """Without an address the SDK would go to its maker's."""
        if self.backend == "tinker" and self.tinker_url is None:
            raise ValueError("BACKTALK_TRAINING_BACKEND=tinker needs BACKTALK_TINKER_URL")
        if self.backend == "tinker" and self.processes > 1:
            raise ValueError("BACKTALK_TRAINING_BACKEND=tinker computes nothing here: BACKTALK_TRAINING_PROCESSES is 1")
        if self.backend == "tinker" and not self.tinker_key.get_secret_value().startswith("tml-"):
            # The SDK takes no others, whatever the service does with it.
            raise ValueError("BACKTALK_TRAINING_BACKEND=tinker needs a BACKTALK_TINKER_KEY that begins with tml-")
        return self

    @model_validator(mode="after")
    def quantization_can_be_had(self) -> Self:
        """A base in 4 bits is whole in each process, and dequantised to 16 or 32."""
        given = f"BACKTALK_QUANTIZATION={self.quantization}"
        if self.quantization != "none" and self.backend == "tinker":
            raise ValueError(f"{given} is of a base that is here: BACKTALK_TRAINING_BACKEND=tinker has it elsewhere")
        if self.quantization != "none" and self.sharding == "on":
            raise ValueError(f"{given} has the whole base in each process: BACKTALK_TRAINING_SHARDING is off")
        if self.quantization != "none" and self.dtype == "float64":
            raise ValueError(f"{given} computes in float32 or bfloat16: BACKTALK_DTYPE is one of them")
        return self
