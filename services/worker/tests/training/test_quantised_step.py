"""A training worker on a base in 4 bits: its step, and what it says of the base."""

import json

import torch
from safetensors.torch import load
from tiny_policy import silent
from worker_process import (
    DEVICE,
    child_of,
    digests,
    loaded_by,
    start_worker,
    train_request,
    without_seconds,
    write_tiny_model,
)

from backtalk_worker.training.domain.adapter import AdapterShape, adapted
from backtalk_worker.training.domain.frozen_states import score_answers
from backtalk_worker.training.domain.token_budget import TokenBudget
from backtalk_worker.training.inputs.backend import LocalBackend
from backtalk_worker.training.inputs.decode import train_order
from backtalk_worker.training.outputs.base_model import load_base_model
from backtalk_worker.training.outputs.blob_cache import BlobCache
from tests.model.quantised import dequantised


def test_its_step_is_on_the_numbers_that_engines_serve_and_the_same_bytes_each_time(tmp_path):
    model = tmp_path / "tiny"
    write_tiny_model(model, width=64)
    request = train_request(model)
    worker = start_worker(model, tmp_path / "worker", BACKTALK_QUANTIZATION="nf4")
    first = worker.train(request)[1]
    second = worker.train(child_of(request, first, "batch_2"))[1]
    assert second.report.measurements["optimizer_restored"] == 1
    files = digests([*first.adapter])
    config, tensors = (worker.get(files[name]) for name in ("adapter_config.json", "adapter_model.safetensors"))
    assert "bitsandbytes" in loaded_by(worker.process.pid)
    assert worker.stop() == 0
    base = load_base_model(model, "tiny", DEVICE, "float32", quantization="nf4")
    assert first.base_digest == base.digest
    # This process takes the step once more.
    order = train_order(request, base.loaded.vocabulary_size, base.loaded.context_length)
    again = LocalBackend(base, BlobCache(tmp_path / "here", 1024**2), None).train(order, silent)
    assert without_seconds(first) == without_seconds(again)
    shape = AdapterShape(4, 8, tuple(json.loads(config)["target_modules"]))
    probe = first.probes[0]
    with adapted(dequantised(base.network), shape, seed=0) as policy, torch.no_grad():
        policy.set_tensors(load(tensors))
        asked = [list(probe.prompt_ids)], [list(probe.answer_ids)], [1.0], TokenBudget(2048)
        found = score_answers(policy.network, *asked, lambda *_: None)[0]
        with policy.network.without_adapter():
            plain = score_answers(policy.network, *asked, lambda *_: None)[0]
    assert torch.allclose(torch.tensor(found), torch.tensor(probe.logprobs), atol=1e-4)
    assert torch.allclose(torch.tensor(plain), torch.tensor(probe.base_logprobs), atol=1e-4)
    assert not torch.allclose(torch.tensor(found), torch.tensor(plain), atol=1e-3)
