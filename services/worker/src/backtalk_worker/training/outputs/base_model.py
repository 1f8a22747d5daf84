"""The base model, loaded once and kept for the life of the process."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from jinja2 import TemplateError

from backtalk_worker.model.load import LoadedModel, load_model
from backtalk_worker.training.domain.adapter import linear_modules
from backtalk_worker.training.domain.network import head_is_plain, network_of
from backtalk_worker.training.domain.sample import Message
from backtalk_worker.training.errors import ModelUnsupportedError


@dataclass(frozen=True)
class BaseModel:
    """What steps and scores run on."""

    name: str
    dtype: str
    loaded: LoadedModel

    @property
    def network(self) -> Any:
        """The transformers model."""
        return self.loaded.network

    @cached_property
    def target_modules(self) -> tuple[str, ...]:
        """Layers that an adapter changes."""
        return linear_modules(self.network)

    def render(self, messages: Sequence[Message], tools: Sequence[Message]) -> list[int] | None:
        """Prompt ids by the model's own template; None when the template refuses the conversation."""
        try:
            return self.loaded.render_chat([_plain(message) for message in messages], tools=tools or None)
        except (TemplateError, TypeError, ValueError, KeyError, AttributeError):
            # Templates fail in their own ways on shapes they don't know; each means the same here.
            return None


def _plain(message: Message) -> dict[str, Any]:
    """Content as templates take it, and as engines give it to them: text, with parts joined by line breaks."""
    content = message.get("content")
    if isinstance(content, list):
        content = "\n".join(part["text"] for part in content)
    return {**message, "content": content or ""}


def load_base_model(folder: Path, name: str, device: str, dtype: str) -> BaseModel:
    """Reads the folder, and refuses a model that the chunked loss would get wrong."""
    loaded = load_model(folder, dtype=getattr(torch, dtype))
    loaded.network.to(torch.device(device))  # type: ignore[arg-type]
    loaded.network.requires_grad_(False)
    if not head_is_plain(network_of(loaded.network)):
        raise ModelUnsupportedError(name)
    return BaseModel(name, dtype, loaded)
