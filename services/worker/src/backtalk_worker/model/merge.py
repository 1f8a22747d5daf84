"""A version merged into its base model: `python -m backtalk_worker.model.merge BASE ADAPTER TO`.

In: folders of the base model and of an adapter in PEFT's layout, and how the base was held when the adapter learned.
Out: a folder with weights in the numbers of the base, its tokenizer and its chat template; or exit code 1 with one line
on standard error. Neither folder is changed.
"""

import argparse
import shutil
import sys
from pathlib import Path
from typing import get_args

import torch
from peft import PeftModel
from safetensors import SafetensorError
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.utils import logging

from backtalk_worker.model.load import load_model
from backtalk_worker.model.quantization import Quantization
from backtalk_worker.process.first_signal import exit_at_signal

WEIGHTS = (".safetensors", ".bin", ".pt", ".gguf", ".index.json")
"""Of the base, and written anew."""


def merge(base: Path, adapter: Path, to: Path, quantization: Quantization = "none") -> None:
    """Adds in float32 and rounds once, to the numbers that the base is kept in."""
    logging.disable_progress_bar()
    config = AutoConfig.from_pretrained(str(base), local_files_only=True)
    if quantization == "none":
        model = AutoModelForCausalLM.from_pretrained(str(base), dtype=torch.float32, local_files_only=True)
    else:
        model = load_model(base, quantization=quantization).network.dequantize()
    merged = PeftModel.from_pretrained(model, str(adapter)).merge_and_unload()  # type: ignore[reportCallIssue]
    merged.to(config.dtype or torch.float32).save_pretrained(to)
    for file in sorted(base.iterdir()):
        if file.is_file() and file.name != "config.json" and not file.name.endswith(WEIGHTS):
            shutil.copyfile(file, to / file.name)


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m backtalk_worker.model.merge", description=__doc__)
    for name in ("base", "adapter", "to"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--quantization", choices=get_args(Quantization), default="none")
    given = parser.parse_args()
    try:
        merge(given.base, given.adapter, given.to, given.quantization)
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        sys.stderr.write(f"{str(error).partition(chr(10))[0]}\n")
        return 1
    return 0


if __name__ == "__main__":
    exit_at_signal()
    sys.exit(main())
