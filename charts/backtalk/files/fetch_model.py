"""Fetches the base model into /models/base. Run by init containers; a repeat fetches only what is missing."""

import os
import signal

# As a container's first process it would otherwise not hear SIGTERM. What is fetched so far is nothing yet.
signal.signal(signal.SIGTERM, lambda number, _frame: os._exit(128 + number))

# The rest takes seconds to import, and a signal must be heard meanwhile.
from huggingface_hub import snapshot_download  # noqa: E402

snapshot_download(
    os.environ["MODEL_HUB_ID"],
    revision=os.environ["MODEL_REVISION"] or None,
    local_dir="/models/base",
    allow_patterns=["*.json", "*.safetensors", "*.txt", "*.model", "*.jinja"],
)
