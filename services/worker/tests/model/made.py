"""Models made on the spot: random weights in the shape of an architecture, a small vocabulary, and a chat template
after the format that its makers document, with tools and thoughts. `python tests/model/made.py DIR` makes one of each.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import (
    AutoModelForCausalLM,
    Gemma3TextConfig,
    LlamaConfig,
    MistralConfig,
    PretrainedConfig,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen3Config,
)

from backtalk_worker.engine.domain.text import byte_of_character

WINDOW = 24
"""Positions that a layer with a sliding window sees; prompts of tests are longer."""

# Qwen2.5 and Qwen3: ChatML; tools as JSON lines between <tools>, calls and results between tags of their own. Qwen3
# keeps thoughts of the answers after the last question, and writes empty ones where thinking is switched off.
CHATML = """\
{%- if tools %}<|im_start|>system
# Tools

You may call one or more functions. Their signatures:
<tools>{% for tool in tools %}
{{ tool | tojson }}{% endfor %}
</tools>
For each call, return JSON with name and arguments within <tool_call></tool_call> tags.<|im_end|>
{% endif %}
{%- set last = namespace(question=-1) %}
{%- for m in messages %}{% if m.role == 'user' %}{% set last.question = loop.index0 %}{% endif %}{% endfor %}
{%- for m in messages %}
{%- if m.role == 'tool' %}<|im_start|>user
<tool_response>
{{ m.content }}
</tool_response><|im_end|>
{% else %}<|im_start|>{{ m.role }}
{% if m.reasoning_content and loop.index0 > last.question %}<think>
{{ m.reasoning_content }}
</think>

{% endif %}{{ m.content }}{% for call in m.tool_calls or [] %}
<tool_call>
{"name": {{ call.function.name | tojson }}, "arguments": {{ call.function.arguments | tojson }}}
</tool_call>{% endfor %}<|im_end|>
{% endif %}{% endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% if enable_thinking is defined and not enable_thinking %}<think>

</think>

{% endif %}{% endif %}"""

# Llama 3.x: headers; tools as JSON in the system turn, a call is JSON with parameters, its result comes from ipython.
LLAMA = """\
{{- '<|begin_of_text|>' }}
{%- if tools %}<|start_header_id|>system<|end_header_id|>

Environment: ipython
{% for tool in tools %}{{ tool | tojson }}

{% endfor %}<|eot_id|>{% endif %}
{%- for m in messages %}<|start_header_id|>{{ 'ipython' if m.role == 'tool' else m.role }}<|end_header_id|>

{{ m.content | trim }}
{%- for call in m.tool_calls or [] -%}
{"name": {{ call.function.name | tojson }}, "parameters": {{ call.function.arguments | tojson }}}
{%- endfor %}<|eot_id|>{% endfor %}
{%- if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>

{% endif %}"""

# Mistral: the end of an instruction opens the answer; tools stand before the last instruction, and tools, calls and
# results are JSON after tokens of their own.
MISTRAL = """\
{{- '<s>' }}
{%- set last = namespace(question=-1) %}
{%- for m in messages %}{% if m.role == 'user' %}{% set last.question = loop.index0 %}{% endif %}{% endfor %}
{%- for m in messages %}
{%- if m.role == 'tool' %}[TOOL_RESULTS]{"content": {{ m.content | tojson }}}[/TOOL_RESULTS]
{%- elif m.role == 'assistant' %}
{%- if m.tool_calls %}[TOOL_CALLS][
{%- for call in m.tool_calls -%}
{"name": {{ call.function.name | tojson }}, "arguments": {{ call.function.arguments | tojson }}}
{%- if not loop.last %}, {% endif %}{% endfor %}]</s>
{%- else %} {{ m.content | trim }}</s>{% endif %}
{%- else %}
{%- if tools and loop.index0 == last.question %}[AVAILABLE_TOOLS][
{%- for tool in tools %}{{ tool | tojson }}{% if not loop.last %}, {% endif %}{% endfor %}][/AVAILABLE_TOOLS]
{%- endif %}[INST] {{ m.content }}[/INST]
{%- endif %}{% endfor %}"""

# Gemma: two speakers; tools are told in the first turn, since the format has no place of their own for them.
GEMMA = """\
{{- '<bos>' }}
{%- for m in messages %}<start_of_turn>{{ 'model' if m.role == 'assistant' else 'user' }}
{% if loop.first and tools %}You have access to functions:
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}
{% endif %}{{ m.content | trim }}
{%- for call in m.tool_calls or [] %}
```tool_code
{{ call.function.name }}({{ call.function.arguments | tojson }})
```{% endfor %}<end_of_turn>
{% endfor %}
{%- if add_generation_prompt %}<start_of_turn>model
{% endif %}"""

SIZES = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 2048,
    "initializer_range": 0.3,
    "tie_word_embeddings": True,
}


@dataclass(frozen=True)
class Made:
    """How one architecture is made."""

    config: Callable[..., PretrainedConfig]
    template: str
    special: tuple[str, ...]
    """The first ends an answer; with a beginning of text, the second is it."""
    shape: dict[str, object]
    tags: tuple[str, ...] = ()
    """Tokens of their own that answers show all the same."""
    falls_back: bool = False
    """A vocabulary of characters with bytes to fall back to, in place of a byte-level one."""


TAGS = ("<tool_call>", "</tool_call>", "<think>", "</think>")

MADE = {
    "llama": Made(
        LlamaConfig,
        LLAMA,
        ("<|eot_id|>", "<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|python_tag|>"),
        {"tie_word_embeddings": False},
    ),
    "qwen2": Made(Qwen2Config, CHATML, ("<|im_end|>", "<|im_start|>"), {}, TAGS[:2]),
    "qwen3": Made(Qwen3Config, CHATML, ("<|im_end|>", "<|im_start|>"), {}, TAGS),
    "mistral": Made(
        MistralConfig,
        MISTRAL,
        ("</s>", "<s>", "[INST]", "[/INST]", "[TOOL_CALLS]", "[ARGS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]"),
        {"sliding_window": WINDOW, "tie_word_embeddings": False},
    ),
    "gemma3": Made(
        Gemma3TextConfig,
        GEMMA,
        ("<end_of_turn>", "<bos>", "<start_of_turn>"),
        {
            "sliding_window": WINDOW,
            "layer_types": ["sliding_attention", "full_attention"],
            "query_pre_attn_scalar": 16,
            # Embeddings are scaled up, and would drown what the layers add.
            "initializer_range": 0.1,
        },
        falls_back=True,
    ),
}


def make_model(kind: str, folder: Path, context: int = 2048) -> Path:
    """Writes a whole model folder (0.3 MB, under a second)."""
    made = MADE[kind]
    tokenizer = _tokenizer(made)
    torch.manual_seed(0)
    config = made.config(
        **{**SIZES, **made.shape, "max_position_embeddings": context},
        vocab_size=len(tokenizer),
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.eos_token_id,
    )
    AutoModelForCausalLM.from_config(config, dtype=torch.float32).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _tokenizer(made: Made) -> PreTrainedTokenizerFast:
    """All bytes and a few words."""
    words = ["the", "and", "rain", "Rome"]
    if made.falls_back:
        pieces = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), *map(chr, range(33, 127)), "▁"]
        own = Tokenizer(models.BPE({p: i for i, p in enumerate(pieces)}, [], unk_token="<unk>", byte_fallback=True))
        own.normalizer = normalizers.Replace(" ", "▁")
        own.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    else:
        pieces = [*sorted(byte_of_character()), *dict.fromkeys(w[:n] for w in words for n in range(2, len(w) + 1))]
        merges = [(w[: n - 1], w[n - 1]) for w in words for n in range(2, len(w) + 1)]
        own = Tokenizer(models.BPE({p: i for i, p in enumerate(pieces)}, merges))
        own.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        own.decoder = decoders.ByteLevel()
    own.add_special_tokens(list(made.special))
    own.add_tokens(list(made.tags))
    return PreTrainedTokenizerFast(tokenizer_object=own, eos_token=made.special[0], chat_template=made.template)


if __name__ == "__main__":
    for kind in MADE:
        make_model(kind, Path(sys.argv[1]) / f"tiny-{kind}")
