"""The training worker's settings: defaults for one machine, and every bad value named at once."""

from pathlib import Path

import pytest

from backtalk_worker.training.config import Address, read_config
from backtalk_worker.training.errors import CATALOGUE, ConfigInvalidError


def test_defaults_suit_one_machine_without_a_gpu():
    config = read_config([], {})
    assert str(config.address) == "127.0.0.1:30026"
    assert (config.device, config.dtype, config.threads, config.nice) == ("cpu", "float32", 1, 10)


def test_a_gpu_brings_its_own_defaults():
    config = read_config([], {"BACKTALK_DEVICE": "cuda"})
    assert (config.dtype, config.nice) == ("bfloat16", 0)


def test_the_command_line_comes_before_the_environment():
    given = {"BACKTALK_GRPC_ADDRESS": "h:1", "BACKTALK_MODEL_DIR": "/m"}
    config = read_config(["--address", "0.0.0.0:5"], given)
    assert config.address == Address("0.0.0.0", 5)
    assert config.model_dir == Path("/m")


def test_all_bad_values_are_named_at_once():
    given = {"BACKTALK_THREADS": "many", "BACKTALK_DTYPE": "int4", "BACKTALK_HEALTH_ADDRESS": "nowhere"}
    with pytest.raises(ConfigInvalidError) as refused:
        read_config([], given)
    assert all(variable in str(refused.value) for variable in given)


def test_every_error_has_its_own_code():
    assert len({error.code for error in CATALOGUE}) == len(CATALOGUE)
