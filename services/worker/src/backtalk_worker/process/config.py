"""Settings of a process: command line and environment in, one frozen object out, or one line that names each bad value.

A class lists each variable once, with type, default, bounds and meaning. Each is also a flag, named like its field, and
a flag comes before the environment; but for secrets, because every user of a machine may read a process's arguments.
Nothing else of the worker reads the environment.
"""

import os
from collections.abc import Sequence
from typing import Any, Literal, Self

from pydantic import Field, SecretStr, ValidationError
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, CliSuppress, SettingsConfigDict

from backtalk_worker.process.errors import ConfigInvalidError, complaints

Secret = CliSuppress[SecretStr]

# What earlier releases read and nothing reads any more: who sets it counts on what it did.
RETIRED = {
    "BACKTALK_SERVICE_TOKEN": "is no longer read: each pair of services has a token of its own, such as"
    " BACKTALK_TRAINER_TO_TRAINING_TOKEN; unset it"
}
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
        secrets = {variable for variable, name in cls.variables().items() if _is_secret(cls.model_fields[name])}
        for argument in arguments:
            given = argument.lstrip("-").partition("=")[0]
            if argument.startswith("--") and given in secrets:
                raise ConfigInvalidError(f"{given} is a secret: give it in the environment, not as an argument")
        names = {variable: name for variable, name in cls.variables().items() if variable not in secrets}
        flags = {variable: name.replace("_", "-") for variable, name in names.items()}
        for variable, why in RETIRED.items():
            if os.environ.get(variable):
                raise ConfigInvalidError(f"{variable} {why}")
        try:
            return cls(_cli_parse_args=list(arguments), _cli_shortcuts=flags)  # type: ignore[call-arg]
        except ValidationError as error:
            raise ConfigInvalidError(complaints(error)) from error


def _is_secret(field: FieldInfo) -> bool:
    return field.annotation is SecretStr


def host_and_port(address: str) -> tuple[str, int]:
    """`host:port` apart; ValueError when it is not of this form."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise ValueError("should be an address like 127.0.0.1:30026")
    return host, int(port)
