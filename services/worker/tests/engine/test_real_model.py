"""The laptop model itself: agreement with transformers and peft over a thousand tokens, and what the template makes."""

from pathlib import Path

import pytest
import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM

from backtalk_worker.engine.domain.plan import Budget
from backtalk_worker.engine.domain.request import Prompt, Sampling
from backtalk_worker.engine.outputs.batch import BatchLimits, Ticket
from backtalk_worker.model.load import LoadedModel, load_model
from tests.engine.conftest import write_adapter
from tests.engine.test_batch import Bench, ids_and_logprobs, reference_logprobs

QUESTIONS = [
    "How do tides work?",
    "Tell me about bread.",
    "Why is the sky blue at noon and red at dusk?",
    "Hi",
    "List 3 fish.",
]
LIMITS = BatchLimits(16, 8192, 32768, 8192, Budget(64, 256), "processed_logprobs")


@pytest.fixture(scope="module")
def real(real_folder: Path) -> LoadedModel:
    return load_model(real_folder)


def test_the_template_adds_the_default_system_prompt(real: LoadedModel):
    ids = real.render_chat([{"role": "user", "content": "Hi"}])
    assert real.decode(ids, skip_special_tokens=False).startswith("<|im_start|>system\nYou are a helpful AI assistant")
    assert len(ids) == 31
    assert (real.context_length, real.end_ids) == (8192, (2,))


def test_a_thousand_tokens_agree_with_peft_with_and_without_an_adapter(
    real: LoadedModel, real_folder: Path, tmp_path: Path
):
    folder = write_adapter(real_folder, tmp_path / "a", seed=5, rank=8, size=0.02)
    bench = Bench(real, LIMITS)
    adapter = bench.adapter(folder)
    tickets = [
        Ticket(
            Prompt(tuple(real.render_chat([{"role": "user", "content": QUESTIONS[i % 5]}]))),
            Sampling(max_tokens=64, temperature=0.8, seed=i, top_logprobs=0),
            adapter if i % 4 else None,
        )
        for i in range(16)
    ]
    got = bench.run(*tickets)
    plain = AutoModelForCausalLM.from_pretrained(real_folder, dtype=torch.float32).eval()
    adapted = PeftModel.from_pretrained(plain, folder).eval()
    gaps: list[float] = []
    for ticket in tickets:
        ids, logprobs = ids_and_logprobs(got[ticket])
        prompt = list(ticket.prompt.ids)
        if ticket.adapter is None:
            with adapted.disable_adapter():
                expected = reference_logprobs(adapted, prompt, ids, 0.8)
        else:
            expected = reference_logprobs(adapted, prompt, ids, 0.8)
        gaps += [abs(a - b) for a, b in zip(logprobs, expected, strict=True)]
    assert len(gaps) >= 1000
    assert sum(gaps) / len(gaps) < 1e-4
    assert max(gaps) < 2e-3
