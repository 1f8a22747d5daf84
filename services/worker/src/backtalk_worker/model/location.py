"""Where the converted laptop model lives, and what it is called."""

import sys
from pathlib import Path

BASE_MODEL_NAME = "smollm2-135m-instruct"


def default_model_dir() -> Path:
    """The folder inside this interpreter's virtual environment, so that removing the environment removes the model."""
    return Path(sys.prefix) / "models" / BASE_MODEL_NAME
