"""Whether torch can compute on a CUDA card: `python -m backtalk_worker.model.device`.

Out: one line of JSON, with the card's name and free memory, or with why there is none.
"""

import json
import sys
from typing import Any

import torch


def card_of(library: Any = torch) -> dict[str, str | int]:
    """The first card, which steps compute on."""
    if library.version.cuda is None:
        return {"why": "torch is its CPU build"}
    try:
        library.cuda.init()
        free, _ = library.cuda.mem_get_info(0)
        return {"name": library.cuda.get_device_name(0), "freeBytes": free}
    except (RuntimeError, AssertionError) as error:
        return {"why": _why(str(error).partition("\n")[0])}


def _why(said: str) -> str:
    """Torch's complaint, in words that say what is missing."""
    if "no NVIDIA driver" in said:
        return "there is no NVIDIA driver (nvidia-smi tells whether there is one)"
    if "No CUDA GPUs" in said:
        return "the driver sees no card (nvidia-smi lists them; CUDA_VISIBLE_DEVICES may hide them)"
    return f"torch cannot use the card: {said.removesuffix('.')}"


if __name__ == "__main__":
    sys.stdout.write(f"{json.dumps(card_of())}\n")
