import pytest

from backtalk_worker.engine.config import SETTINGS, ConfigError, EngineConfig, read_config


def test_flags_win_over_the_environment_and_that_over_defaults():
    config = read_config({"BACKTALK_ENGINE_PORT": "1", "BACKTALK_ENGINE_ROWS_MAX": "3"}, ["--port", "2"])
    assert (config.port, config.rows_max, config.host) == (2, 3, "127.0.0.1")


def test_every_bad_value_is_named_with_its_variable():
    with pytest.raises(ConfigError) as caught:
        read_config({"BACKTALK_ENGINE_PORT": "99999", "BACKTALK_LOG_LEVEL": "loud"}, [])
    assert "BACKTALK_ENGINE_PORT" in str(caught.value)
    assert "BACKTALK_LOG_LEVEL" in str(caught.value)


def test_every_field_can_be_set():
    assert {setting.field for setting in SETTINGS} == set(EngineConfig.__dataclass_fields__)
