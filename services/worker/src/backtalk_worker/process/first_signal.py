"""Ends a process that still starts at once when it is asked to stop; imported before anything that takes long.

As a container's first process it would otherwise never hear SIGTERM before a handler is there. A service takes the
signals over (`on_signal`) once it has something to bring to an end.
"""

import os
import signal
import sys


def end_at_signal() -> None:
    """Nothing is in flight yet: no clean-up is worth a wait."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _frame: os._exit(128 + number))


def exit_at_signal() -> None:
    """For a command that has files to clean up: `finally` blocks run."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _frame: sys.exit(128 + number))
