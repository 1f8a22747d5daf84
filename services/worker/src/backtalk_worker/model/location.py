"""Where the converted laptop model lives, what it is called, and the adapter that is merged into it."""

import hashlib
import sys
from pathlib import Path

BASE_MODEL_NAME = "smollm2-135m-wishes"


def default_model_dir() -> Path:
    """The folder inside this interpreter's virtual environment, so that removing the environment removes the model."""
    return Path(sys.prefix) / "models" / BASE_MODEL_NAME


def packaged_adapter() -> Path:
    """The adapter that lies in the tree."""
    return Path(__file__).parents[1] / "laptop_model" / "adapter.safetensors"


def digest_of_file(path: Path) -> str:
    """SHA-256."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
