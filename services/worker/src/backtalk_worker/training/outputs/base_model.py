"""The base model, loaded once and kept for the life of the process."""

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedTokenizerBase

from backtalk_worker.model.load import LoadedModel, load_model, read_figures
from backtalk_worker.model.quantization import Quantization
from backtalk_worker.training.domain.adapter import linear_modules
from backtalk_worker.training.domain.network import PLAIN, Layout, head_is_plain, network_of
from backtalk_worker.training.errors import ModelUnsupportedError, TeacherUnsupportedError


@dataclass(frozen=True)
class BaseFacts:
    """What callers are told of the base, and what requests are held against."""

    name: str
    dtype: str
    device: str
    digest: str
    context_length: int
    vocabulary_size: int
    end_ids: tuple[int, ...]
    control_tokens: tuple[str, ...]


@dataclass(frozen=True)
class BaseModel:
    """What steps and scores run on."""

    name: str
    dtype: str
    digest: str
    """Of weights and vocabulary: a base that was changed under its name is known by it."""
    loaded: LoadedModel
    layout: Layout = PLAIN
    teacher: "BaseModel | None" = None
    """Another model that steps may be taught by."""

    @property
    def network(self) -> Any:
        """The transformers model."""
        return self.loaded.network

    @cached_property
    def target_modules(self) -> tuple[str, ...]:
        """Layers that an adapter changes."""
        return linear_modules(self.network)

    @cached_property
    def facts(self) -> BaseFacts:
        loaded = self.loaded
        return BaseFacts(
            self.name,
            self.dtype,
            self.network.device.type,
            self.digest,
            loaded.context_length,
            loaded.vocabulary_size,
            loaded.end_ids,
            _control_tokens(loaded.tokenizer),
        )


def load_base_model(
    folder: Path, name: str, device: str, dtype: str, layout: Layout = PLAIN, quantization: Quantization = "none"
) -> BaseModel:
    """Reads the folder, and refuses a model that the chunked loss would get wrong."""
    loaded = load_model(folder, dtype=getattr(torch, dtype), quantization=quantization, device=device)
    loaded.network.requires_grad_(False)
    if not head_is_plain(network_of(loaded.network)):
        raise ModelUnsupportedError(name)
    if layout.sharing.size > 1:
        # Takes long to import, for what one process has no use for.
        from backtalk_worker.training.outputs.sharding import shard

        shard(loaded.network, torch.device(device).type)
    return BaseModel(name, dtype, _digest(folder, quantization), loaded, layout)


def with_teacher(base: BaseModel, teacher: BaseModel) -> BaseModel:
    """The base with a teacher beside it: of the same tokens, since the two are compared token by token."""
    problem = ""
    if teacher.loaded.tokenizer.get_vocab() != base.loaded.tokenizer.get_vocab():
        problem = "its tokenizer has other tokens"
    elif teacher.loaded.vocabulary_size != base.loaded.vocabulary_size:
        counts = teacher.loaded.vocabulary_size, base.loaded.vocabulary_size
        problem = f"it knows {counts[0]} tokens, the base {counts[1]}"
    elif teacher.loaded.context_length < base.loaded.context_length:
        problem = f"its context is {teacher.loaded.context_length} tokens, the base's {base.loaded.context_length}"
    if problem:
        raise TeacherUnsupportedError(teacher.name, base.name, problem)
    return replace(base, teacher=teacher)


def base_elsewhere(folder: Path, name: str, dtype: str) -> BaseFacts:
    """Of a model whose weights another machine computes with: the folder has configuration and tokenizer."""
    known = read_figures(folder)
    return BaseFacts(
        name,
        dtype,
        "remote",
        _digest(folder),
        known.context_length,
        known.vocabulary_size,
        known.end_ids,
        _control_tokens(known.tokenizer),
    )


def _control_tokens(tokenizer: PreTrainedTokenizerBase) -> tuple[str, ...]:
    """Texts that the tokenizer takes for tokens of the template wherever they stand."""
    template = str(getattr(tokenizer, "chat_template", ""))
    added = [token for token in tokenizer.added_tokens_decoder.values() if token.content.strip()]
    return tuple(sorted(token.content for token in added if token.special or token.content in template))


def _digest(folder: Path, quantization: Quantization = "none") -> str:
    """sha256 over names and digests of the files that make up weights and vocabulary, and what was made of them."""
    whole = hashlib.sha256(b"" if quantization == "none" else f"{quantization}\n".encode())
    for path in sorted([*folder.glob("*.safetensors"), *folder.glob("*.bin"), *folder.glob("tokenizer.json")]):
        with path.open("rb") as file:
            whole.update(f"{path.name} {hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
    return whole.hexdigest()
