"""Base of every failure that a caller is answered with: a code for logs and metrics, and words that quote no user text.

Each failure is a class. The engine adds HTTP's status and vLLM's type, the training worker gRPC's status and the retry.
"""

from typing import ClassVar, Self


class WorkerError(Exception):
    """Only subclasses with a code are raised; the facts of one failure are filled into their words."""

    code: ClassVar[str] = ""
    words: ClassVar[str] = "{}"

    def __init__(self, *facts: object) -> None:
        super().__init__(self.words.format(*facts))

    @classmethod
    def catalogue(cls) -> list[type[Self]]:
        """Every failure below this class."""
        return [each for child in cls.__subclasses__() for each in ([child] if child.code else []) + child.catalogue()]


class ConfigInvalidError(WorkerError):
    """A flag or an environment variable holds a value that can't be used; the process does not start."""

    code = "config_invalid"
