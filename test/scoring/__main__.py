"""`python -m scoring`: requests on standard input, answers on standard output, a line each, until the input ends.

The first line says that the scorer is ready. Log and warnings go to standard error.
"""

import json
import os
import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from scoring.embedding import Embedder

LINE_CHARACTERS_MAX = 64 * 1024 * 1024


def main() -> int:
    """Exit code 0 at the end of the input, 1 with one line when the embeddings can't be loaded."""
    # Set before the libraries are imported: they must not ask the network for what lies in the wheel.
    os.environ["HF_HUB_OFFLINE"] = "1"
    import torch

    from scoring.embedding import NAME, Embedder

    torch.set_num_threads(1)
    try:
        embedder = Embedder()
    except OSError as error:
        sys.stderr.write(f"the scorer can't run: {error}\n")
        return 1
    _write(sys.stdout, json.dumps({"ready": True, "embeddings": NAME}))
    _serve(sys.stdin, sys.stdout, embedder)
    return 0


def _serve(requests: TextIO, answers: TextIO, embedder: "Embedder") -> None:
    from scoring.protocol import answer_line

    while line := requests.readline(LINE_CHARACTERS_MAX):
        if line.strip():
            _write(answers, answer_line(line, embedder))


def _write(out: TextIO, line: str) -> None:
    out.write(line + "\n")
    out.flush()


if __name__ == "__main__":
    sys.exit(main())
