"""Settings of both processes: flags, environment, defaults, and every bad value named at once."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from backtalk_worker.engine.config import EngineConfig
from backtalk_worker.process.config import ProcessConfig
from backtalk_worker.process.errors import ConfigInvalidError
from backtalk_worker.process.run import run_process
from backtalk_worker.training.config import TrainingWorkerConfig

CONFIGS = [EngineConfig, TrainingWorkerConfig]
SECRETS = [
    "BACKTALK_ENGINE_KEY", "BACKTALK_ENGINE_JUDGE_KEY", "BACKTALK_TRAINER_TO_TRAINING_TOKEN", "BACKTALK_TINKER_KEY",
]  # fmt: skip


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for config in CONFIGS:
        for variable in config.variables():
            monkeypatch.delenv(variable, raising=False)


def test_flags_win_over_the_environment_and_that_over_defaults(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("BACKTALK_ENGINE_PORT", "1")
    monkeypatch.setenv("BACKTALK_ENGINE_ROWS_MAX", "3")
    config = EngineConfig.read(["--port", "2"])
    assert (config.port, config.rows_max, config.host) == (2, 3, "127.0.0.1")


def test_an_empty_variable_counts_as_absent_and_other_names_are_not_read(monkeypatch: pytest.MonkeyPatch):
    for name, value in {"BACKTALK_ENGINE_PORT": "", "PORT": "7", "HOST": "elsewhere", "port": "8"}.items():
        monkeypatch.setenv(name, value)
    config = EngineConfig.read([])
    assert (config.port, config.host) == (30030, "127.0.0.1")


@pytest.mark.parametrize("config", CONFIGS)
def test_every_setting_is_a_flag_and_says_what_it_is_for(
    config: type[ProcessConfig], capsys: pytest.CaptureFixture[str]
):
    with pytest.raises(SystemExit):
        config.read(["--help"])
    said = " ".join(capsys.readouterr().out.split())
    # Every user of a machine may read the arguments of a process.
    listed = {variable: name for variable, name in config.variables().items() if variable not in SECRETS}
    for variable, name in listed.items():
        assert f"--{name.replace('_', '-')}" in said and variable in said
        assert str(config.model_fields[name].description) in said


@pytest.mark.parametrize("variable", SECRETS)
def test_a_secret_is_taken_from_the_environment_only_and_never_shown(variable: str, monkeypatch: pytest.MonkeyPatch):
    config = next(each for each in CONFIGS if variable in each.variables())
    for arguments in ([f"--{variable}", "canary"], [f"--{variable}=canary"]):
        with pytest.raises(ConfigInvalidError, match=variable) as refused:
            config.read(arguments)
        assert "canary" not in str(refused.value)
    # A key of judges needs it beside its own.
    monkeypatch.setenv("BACKTALK_ENGINE_KEY", "own")
    monkeypatch.setenv(variable, "canary")
    read = config.read([])
    assert getattr(read, config.variables()[variable]).get_secret_value() == "canary"
    assert "canary" not in repr(read)


def test_defaults_suit_one_machine_without_a_gpu():
    config = TrainingWorkerConfig.read([])
    assert config.address == "127.0.0.1:30026"
    assert (config.device, config.dtype, config.threads, config.nice) == ("cpu", "float32", 1, 10)


@pytest.mark.parametrize(
    ("environment", "at_once"),
    [
        ({}, 8),
        ({"BACKTALK_THREADS": "2"}, 4),
        ({"BACKTALK_THREADS": "2", "BACKTALK_TRAINING_PROCESSES": "3"}, 1),
        ({"BACKTALK_THREADS": "64"}, 1),
        ({"BACKTALK_DEVICE": "cuda"}, 1),
        ({"BACKTALK_DEVICE": "cuda", "BACKTALK_MICRO_BATCHES_AT_ONCE": "2"}, 2),
    ],
)
def test_as_many_micro_batches_at_once_as_leave_a_core_for_each_thread(
    environment: dict[str, str], at_once: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    for variable, value in environment.items():
        monkeypatch.setenv(variable, value)
    assert TrainingWorkerConfig.read([]).at_once == at_once


def test_a_gpu_brings_its_own_defaults(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("BACKTALK_DEVICE", "cuda")
    config = TrainingWorkerConfig.read([])
    assert (config.dtype, config.nice) == ("bfloat16", 0)


def test_the_command_line_of_the_training_worker_comes_before_its_environment(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("BACKTALK_GRPC_ADDRESS", "h:1")
    monkeypatch.setenv("BACKTALK_MODEL_DIR", "/m")
    config = TrainingWorkerConfig.read(["--address", "0.0.0.0:5"])
    assert (config.address, config.model_dir) == ("0.0.0.0:5", Path("/m"))


@pytest.mark.parametrize(
    ("config", "bad"),
    [
        (EngineConfig, {"BACKTALK_ENGINE_PORT": "99999", "BACKTALK_LOG_LEVEL": "loud"}),
        (EngineConfig, {"BACKTALK_ENGINE_SHUTDOWN_SECONDS": "nan", "BACKTALK_ENGINE_LOGPROBS_MODE": "both"}),
        (
            TrainingWorkerConfig,
            {"BACKTALK_THREADS": "many", "BACKTALK_DTYPE": "int4", "BACKTALK_HEALTH_ADDRESS": "nowhere"},
        ),
        (TrainingWorkerConfig, {"BACKTALK_DEVICE": "tpu", "BACKTALK_BASE_MODEL": "a\nb", "BACKTALK_NICE": "20"}),
        (TrainingWorkerConfig, {"BACKTALK_BLOB_CACHE_BYTES": "1", "BACKTALK_GRPC_ADDRESS": "h:70000"}),
    ],
)
def test_one_line_names_every_bad_value_and_says_what_it_should_be(
    config: type[ProcessConfig], bad: dict[str, str], monkeypatch: pytest.MonkeyPatch
):
    for variable, value in bad.items():
        monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigInvalidError) as refused:
        config.read([])
    complaints = str(refused.value).split("; ")
    assert sorted(line.split(":")[0] for line in complaints) == sorted(bad)
    for line in complaints:
        variable = line.split(":")[0]
        assert line.startswith(f"{variable}: {bad[variable]!r} should ")
    assert "\n" not in str(refused.value)


def test_a_training_service_needs_an_address_and_a_key_that_its_sdk_takes(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("BACKTALK_TRAINING_BACKEND", "tinker")
    with pytest.raises(ConfigInvalidError, match="needs BACKTALK_TINKER_URL"):
        TrainingWorkerConfig.read([])
    monkeypatch.setenv("BACKTALK_TINKER_URL", "http://there:8000")
    with pytest.raises(ConfigInvalidError, match="needs a BACKTALK_TINKER_KEY that begins with tml-"):
        TrainingWorkerConfig.read([])
    monkeypatch.setenv("BACKTALK_TINKER_KEY", "tml-any")
    # What is not known of its numbers is not said to be exact.
    assert TrainingWorkerConfig.read([]).dtype == "bfloat16"


@pytest.mark.parametrize(
    ("with_it", "why"),
    [
        (("BACKTALK_TRAINING_SHARDING", "on"), "has the whole base in each process: BACKTALK_TRAINING_SHARDING is off"),
        (("BACKTALK_DTYPE", "float64"), "computes in float32 or bfloat16: BACKTALK_DTYPE is one of them"),
        (("BACKTALK_QUANTIZATION", "int3"), "'int3' should be 'none' or 'nf4'"),
    ],
)
def test_what_a_base_in_four_bits_cannot_be_is_refused(
    with_it: tuple[str, str], why: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("BACKTALK_QUANTIZATION", "nf4")
    assert TrainingWorkerConfig.read([]).quantization == "nf4"
    monkeypatch.setenv(*with_it)
    with pytest.raises(ConfigInvalidError, match=why):
        TrainingWorkerConfig.read([])


def test_a_key_of_judges_opens_nothing_by_itself(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("BACKTALK_ENGINE_JUDGE_KEY", "judges")
    with pytest.raises(ConfigInvalidError, match="set BACKTALK_ENGINE_KEY, too"):
        EngineConfig.read([])
    monkeypatch.setenv("BACKTALK_ENGINE_KEY", "own")
    assert EngineConfig.read([]).judge_key.get_secret_value() == "judges"


def test_a_base_elsewhere_is_not_quantised_here(monkeypatch: pytest.MonkeyPatch):
    for variable, value in {
        "BACKTALK_TRAINING_BACKEND": "tinker",
        "BACKTALK_TINKER_URL": "http://there:8000",
        "BACKTALK_TINKER_KEY": "tml-any",
        "BACKTALK_QUANTIZATION": "nf4",
    }.items():
        monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigInvalidError, match="BACKTALK_TRAINING_BACKEND=tinker has it elsewhere"):
        TrainingWorkerConfig.read([])


def test_what_cannot_start_says_why_in_one_line_and_exits_with_one(capsys: pytest.CaptureFixture[str]):
    assert run_process("engine", lambda: EngineConfig.read(["--port", "x"])) == 1  # type: ignore[arg-type,return-value]
    said = capsys.readouterr().err
    assert said.startswith("the engine can't run: BACKTALK_ENGINE_PORT: 'x' should be a valid integer")
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize("config", CONFIGS)
def test_a_variable_that_nothing_reads_any_more_is_refused_by_its_name(
    config: type[ProcessConfig], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("BACKTALK_SERVICE_TOKEN", "canary")
    with pytest.raises(ConfigInvalidError, match=r"BACKTALK_SERVICE_TOKEN is no longer read") as refused:
        config.read([])
    assert "canary" not in str(refused.value)


@pytest.mark.parametrize("part", ["engine", "training"])
def test_settings_are_read_before_torch_is_imported(part: str):
    read = f"import backtalk_worker.{part}.config, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", read], check=False).returncode == 0
