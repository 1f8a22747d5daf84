import pytest
import torch
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

from backtalk_worker.model.load import LoadedModel
from backtalk_worker.model.location import default_model_dir


@pytest.fixture
def tiny_model() -> LoadedModel:
    """A random decoder of three layers with grouped heads, and the laptop model's tokenizer."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    config = LlamaConfig(
        vocab_size=49152,
        hidden_size=48,
        intermediate_size=96,
        num_hidden_layers=3,
        num_attention_heads=6,
        num_key_value_heads=2,
        head_dim=8,
        max_position_embeddings=512,
        tie_word_embeddings=True,
        initializer_range=0.3,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=2,
    )
    folder = default_model_dir()
    return LoadedModel(
        network=LlamaForCausalLM(config).eval(),
        tokenizer=AutoTokenizer.from_pretrained(folder, local_files_only=True),
        folder=folder,
        context_length=512,
        vocabulary_size=49152,
        end_ids=(2,),
    )
