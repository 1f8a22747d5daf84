"""Runs an engine's module, named first, with the flags behind it, and hears SIGTERM for it.

As a container's first process an engine would not hear it before it has been imported, and vLLM can lose one that
comes while its core starts. An engine that does not listen yet has nothing in hand and ends at once; one that does is
told, and ends by itself. SGLang's key is added in the process, where no list of processes shows it.
"""

import os
import signal
import socket
import sys

PORT = 30030


def main(module: str, *flags: str) -> None:
    """Ends as the engine does (128 and its signal where one ended it), with 143 where it had not served yet."""
    engine = os.fork()
    if engine == 0:
        run(module, *flags)
        return

    def stop(number: int, _frame: object) -> None:
        try:
            socket.create_connection(("localhost", PORT), timeout=1).close()
        except OSError:
            os.kill(engine, signal.SIGKILL)
            os._exit(128 + number)
        os.kill(engine, number)

    signal.signal(signal.SIGTERM, stop)
    ended, status = os.wait()
    while ended != engine:
        ended, status = os.wait()
    code = os.waitstatus_to_exitcode(status)
    sys.exit(code if code >= 0 else 128 - code)


def run(module: str, *flags: str) -> None:
    """The engine, in this process."""
    import runpy

    key = ["--api-key", os.environ["ENGINE_KEY"]] if module.startswith("sglang.") else []
    sys.argv = [module, *flags, *key]
    runpy.run_module(module, run_name="__main__")


main(*sys.argv[1:])
