"""Fetches the base model into /models/base. Run by init containers; a repeat fetches only what is missing."""

import os

from huggingface_hub import snapshot_download

snapshot_download(
    os.environ["MODEL_HUB_ID"],
    revision=os.environ["MODEL_REVISION"] or None,
    local_dir="/models/base",
    allow_patterns=["*.json", "*.safetensors", "*.txt", "*.model", "*.jinja"],
)
