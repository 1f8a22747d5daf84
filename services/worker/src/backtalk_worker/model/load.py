"""Loads a model folder for serving or training: one that `model.convert` made, or any of a causal model.

It never downloads and never changes the folder.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    BitsAndBytesConfig,
    GenerationConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils import logging

from backtalk_worker.model.quantization import Quantization


@dataclass(frozen=True)
class LoadedModel:
    """A model in evaluation mode with what is needed to talk to it."""

    network: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    folder: Path
    context_length: int
    """Tokens of prompt and answer together."""
    vocabulary_size: int
    """Columns of the logits."""
    end_ids: tuple[int, ...]
    """Ids that end an answer."""

    @property
    def pad_id(self) -> int:
        """The id that fills unused positions."""
        pad = self.tokenizer.pad_token_id
        return self.end_ids[0] if not isinstance(pad, int) else pad

    def render_chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = True,
        template_arguments: Mapping[str, Any] | None = None,
    ) -> list[int]:
        """Messages → prompt ids, by the model's own template (it adds a system prompt when none is given)."""
        text = self.tokenizer.apply_chat_template(
            [dict(message) for message in messages],
            tools=[dict(tool) for tool in tools] if tools else None,
            tokenize=False,
            add_generation_prompt=add_generation_prompt,
            **dict(template_arguments or {}),
        )
        return self.encode(str(text))

    def encode(self, text: str, *, add_special_tokens: bool = False) -> list[int]:
        """Text → ids."""
        return list(self.tokenizer(text, add_special_tokens=add_special_tokens)["input_ids"])  # type: ignore[arg-type]

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = True) -> str:
        """Ids → text, as is (no clean-up of spaces)."""
        return str(
            self.tokenizer.decode(
                list(ids), skip_special_tokens=skip_special_tokens, clean_up_tokenization_spaces=False
            )
        )


@dataclass(frozen=True)
class ModelFigures:
    """What a folder says about its model without the weights, which may be elsewhere."""

    tokenizer: PreTrainedTokenizerBase
    context_length: int
    vocabulary_size: int
    end_ids: tuple[int, ...]


def read_figures(folder: Path) -> ModelFigures:
    """Reads configuration and tokenizer; raises as `load_model` does."""
    tokenizer = _read_tokenizer(folder)
    config = AutoConfig.from_pretrained(str(folder), local_files_only=True).get_text_config()
    generation = None
    if (folder / "generation_config.json").is_file():
        generation = GenerationConfig.from_pretrained(str(folder), local_files_only=True)
    return ModelFigures(
        tokenizer=tokenizer,
        context_length=int(config.max_position_embeddings),
        vocabulary_size=int(config.vocab_size),
        end_ids=_end_ids(generation or config, tokenizer),
    )


def load_model(
    folder: Path, *, dtype: torch.dtype = torch.float32, quantization: Quantization = "none", device: str = "cpu"
) -> LoadedModel:
    """Reads the folder (2 s and 0.6 GB for the laptop model) onto the device.

    FileNotFoundError names the command that makes it, PermissionError the file that this user may not read.
    """
    tokenizer = _read_tokenizer(folder)
    _refuse_unknown(folder)
    how = {} if quantization == "none" else _quantized(dtype, device)
    network = _read_network(folder, dtype=dtype, **how)
    if quantization == "none":
        network.to(torch.device(device))  # type: ignore[arg-type]
    else:
        _keep_exact(network, folder)
    return LoadedModel(
        network=network,
        tokenizer=tokenizer,
        folder=folder,
        context_length=int(network.config.max_position_embeddings),
        vocabulary_size=int(network.config.vocab_size),
        end_ids=_end_ids(network.generation_config, tokenizer),
    )


def _read_network(folder: Path, **how: Any) -> Any:
    """OSError says in one line what can't be read, or which weights the folder lacks: chance would fill them in."""
    try:
        read: Any = AutoModelForCausalLM.from_pretrained(
            str(folder), local_files_only=True, output_loading_info=True, **how
        )
    except (SafetensorError, ValueError) as error:
        raise OSError(f"the model in {folder} can't be read: {str(error).partition(chr(10))[0]}") from error
    network, found = read
    missing = sorted(found["missing_keys"])
    if missing:
        raise OSError(f"the model in {folder} lacks {len(missing)} of its weights, among them {missing[0]}")
    return network.eval()


FOLLOWED = ("gemma3_text", "llama", "mistral", "qwen2", "qwen3")
"""Model types whose layers, attention and head are all that engine and training compute, as tests show of each."""


def _refuse_unknown(folder: Path) -> None:
    """Others would be computed in part, without a word: scaled or capped logits, sinks, layers that read other rows."""
    config = AutoConfig.from_pretrained(str(folder), local_files_only=True)
    if config.model_type not in FOLLOWED:
        known = ", ".join(FOLLOWED)
        raise OSError(f"the model in {folder} is of the type {config.model_type}, and what can be followed is {known}")
    if getattr(config, "attn_logit_softcapping", None):
        raise OSError(f"the model in {folder} caps its attention, which neither serving nor training follows")
    # Frequencies that follow from the longest row of a pass would make a row depend on its neighbours.
    rope = str(getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None))
    if "longrope" in rope or "dynamic" in rope:
        raise OSError(f"the model in {folder} has positions that depend on the longest prompt, which is not followed")


def _quantized(dtype: torch.dtype, device: str) -> dict[str, Any]:
    """As vLLM's own loader quantises, so that both compute with the same numbers; layers compute in `dtype`."""
    if find_spec("bitsandbytes") is None:
        raise OSError(
            "quantization nf4 needs the package bitsandbytes: `node deploy/start.mjs setup --with quantization`"
        )
    config = BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=dtype,
    )
    return {"quantization_config": config, "device_map": {"": device}}


NF4_BLOCK = 64
"""Numbers that share a scale."""


def _keep_exact(network: Any, folder: Path) -> None:
    """On CPUs the library (0.50) goes over to bfloat16 and loses gradients, and mixes up blocks that span two rows."""
    for layer in (one for one in network.modules() if hasattr(one, "support_avx512bf16_for_cpu")):
        layer.support_avx512bf16_for_cpu = False
        if network.device.type == "cpu" and layer.in_features % NF4_BLOCK:
            raise OSError(
                f"the model in {folder} has layers of {layer.in_features} inputs: quantization nf4 needs"
                f" multiples of {NF4_BLOCK} on a CPU"
            )


def _read_tokenizer(folder: Path) -> PreTrainedTokenizerBase:
    if not (folder / "config.json").is_file():
        if folder.is_dir() and any(folder.iterdir()):
            raise FileNotFoundError(f"no model in {folder}: it holds no config.json")
        raise FileNotFoundError(
            f"no model in {folder}: make it with `python -m backtalk_worker.model.convert --to {folder}`"
        )
    # The readers of weights call an unreadable file missing: it is opened here, so that the system says why.
    for file in sorted(path for path in folder.iterdir() if path.is_file()):
        file.open("rb").close()
    logging.disable_progress_bar()
    return AutoTokenizer.from_pretrained(str(folder), local_files_only=True)


def _end_ids(generation: Any, tokenizer: PreTrainedTokenizerBase) -> tuple[int, ...]:
    """The generation config's end ids and the tokenizer's, in this order, without repeats."""
    configured = getattr(generation, "eos_token_id", None)
    listed = configured if isinstance(configured, list) else [configured]
    ids = [*listed, tokenizer.eos_token_id]
    return tuple(dict.fromkeys(i for i in ids if isinstance(i, int)))
