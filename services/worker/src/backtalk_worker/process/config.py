"""Settings of a process: command line and environment in, one frozen object out, or one line that names each bad value.

A class lists each variable once, with type, default, bounds and meaning. Each is also a flag, named like its field, and
a flag comes before the environment. Nothing else of the worker reads the environment.
"""

from collections.abc import Sequence
from typing import Any, Literal, Self

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from backtalk_worker.process.errors import ConfigInvalidError, complaints

LogLevel = Literal["debug", "info", "warn", "warning", "error"]


def setting(variable: str, default: Any, meaning: str, **bounds: Any) -> Any:
    """One field: its variable, its default (or a function of the fields before it), and what it is for."""
    given = {"default_factory": default} if callable(default) else {"default": default}
    return Field(**given, validation_alias=variable, description=meaning, **bounds)


class ProcessConfig(BaseSettings):
    """Base of all settings; a subclass only lists its fields. An empty variable counts as absent."""

    model_config = SettingsConfigDict(case_sensitive=True, env_ignore_empty=True, extra="ignore", frozen=True)

    @classmethod
    def variables(cls) -> dict[str, str]:
        """Variable → field."""
        return {str(field.validation_alias): name for name, field in cls.model_fields.items()}

    @classmethod
    def read(cls, arguments: Sequence[str]) -> Self:
        """Reads flags and environment; all bad values are named in one ConfigInvalidError."""
        flags = {variable: name.replace("_", "-") for variable, name in cls.variables().items()}
        try:
            return cls(_cli_parse_args=list(arguments), _cli_shortcuts=flags)  # type: ignore[call-arg]
        except ValidationError as error:
            raise ConfigInvalidError(complaints(error)) from error


def host_and_port(address: str) -> tuple[str, int]:
    """`host:port` apart; ValueError when it is not of this form."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise ValueError("should be an address like 127.0.0.1:30026")
    return host, int(port)
