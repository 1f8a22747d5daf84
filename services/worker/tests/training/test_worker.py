"""The training worker as a process: the same bytes whatever happens, one step at a time, and nothing torn."""

import json
import shutil
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import grpc
import pytest
import torch
from safetensors.torch import load
from worker_process import (
    DEADLINE_S,
    DEVICE,
    child_of,
    digests,
    error_code,
    is_digest,
    loaded_by,
    start_worker,
    train_request,
    without_seconds,
    write_tiny_model,
)

from backtalk_worker.gen.backtalk.v1 import training_pb2
from backtalk_worker.model.load import load_model
from backtalk_worker.training.outputs.base_model import load_base_model
from backtalk_worker.training.outputs.blob_cache import LOCK


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiny")
    write_tiny_model(folder)
    return folder


@pytest.fixture(scope="module")
def worker(model, tmp_path_factory):
    running = start_worker(model, tmp_path_factory.mktemp("blobs"))
    yield running
    running.kill()


@pytest.fixture(scope="module")
def first(worker, model):
    """The first version."""
    return worker.train(train_request(model))[1]


class Taught:
    """A second worker beside which another model may teach, as it runs now."""

    def __init__(self, model: Path, folder: Path) -> None:
        self.model, self.cache, self.teacher = model, folder / "blobs", folder / "wide"
        write_tiny_model(self.teacher, seed=3, width=48)
        self.start()

    def start(self) -> None:
        self.now = start_worker(self.model, self.cache, BACKTALK_TEACHER_MODEL_DIR=str(self.teacher))


@pytest.fixture(scope="module")
def taught(model, tmp_path_factory):
    running = Taught(model, tmp_path_factory.mktemp("taught"))
    yield running
    running.now.kill()


def status_of(url):
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, ""


def test_a_worker_whose_base_is_whole_loads_no_library_for_four_bits(worker, first):
    assert "bitsandbytes" not in loaded_by(worker.process.pid)


def test_status_says_what_the_worker_is(worker):
    status = worker.stub.Status(training_pb2.StatusRequest(), timeout=DEADLINE_S)
    assert (status.base_model, status.dtype, status.device, status.max_context) == ("tiny", "float32", DEVICE, 512)
    assert status.training == ""
    assert {"<|im_start|>", "<|im_end|>", "<|endoftext|>"} <= set(status.control_tokens)


def test_health_answers_and_metrics_count(worker, first):
    assert status_of(f"http://{worker.health}/livez")[0] == 200
    assert status_of(f"http://{worker.health}/readyz") == (200, '{"model": true}')
    assert status_of(f"http://{worker.health}/elsewhere")[0] == 404
    metrics = status_of(f"http://{worker.health}/metrics")[1]
    assert 'backtalk_training_steps_total{outcome="finished"}' in metrics


def test_a_step_streams_its_phases_and_gives_files_report_and_probes(worker, model):
    progress, result = worker.train(train_request(model, call="phases"))
    phases = list(dict.fromkeys(one.phase for one in progress))
    assert phases[0] in ("load", "teacher")
    assert phases[-1] in ("probes", "save")
    assert [file.name for file in result.adapter] == ["adapter_model.safetensors", "adapter_config.json"]
    assert [file.name for file in result.training_state] == ["optimizer.safetensors"]
    assert (result.base_model, result.dtype) == ("tiny", "float32")
    assert [sample.dropped for sample in result.report.samples] == [""] * 4
    assert result.report.measurements["step_scale"] > 0
    assert result.report.measurements["logprob_difference"] < 1e-4
    probe = result.probes[0]
    assert 0 < len(probe.answer_ids) == len(probe.logprobs) == len(probe.base_logprobs) <= 16
    assert list(probe.told_logprobs) == []


def test_adapter_config_holds_the_fields_that_engines_load_and_no_others(worker, first):
    config = json.loads(worker.get(digests(first.adapter)["adapter_config.json"]))
    assert config == {
        "base_model_name_or_path": "tiny", "bias": "none", "lora_alpha": 8, "lora_dropout": 0.0, "peft_type": "LORA",
        "r": 4, "task_type": "CAUSAL_LM",
        "target_modules": ["down_proj", "gate_proj", "k_proj", "o_proj", "q_proj", "up_proj", "v_proj"],
    }  # fmt: skip


def test_the_adapter_loads_in_peft_and_gives_the_probes_logprobs(worker, first, model, tmp_path):
    from peft import PeftModel

    for name, digest in digests(first.adapter).items():
        (tmp_path / name).write_bytes(worker.get(digest))
    network = PeftModel.from_pretrained(load_model(model).network, str(tmp_path)).eval()
    probe = first.probes[0]
    ids = torch.tensor([[*probe.prompt_ids, *probe.answer_ids]])
    with torch.no_grad():
        logits = network(input_ids=ids).logits[0, len(probe.prompt_ids) - 1 : -1]
    found = torch.log_softmax(logits, -1)[range(len(probe.answer_ids)), list(probe.answer_ids)]
    assert torch.allclose(found, torch.tensor(probe.logprobs), atol=1e-4)


def test_score_gives_the_logprobs_of_given_ids_under_adapter_and_base(worker, first):
    probe = first.probes[0]
    item = training_pb2.ScoreItem(prompt_ids=probe.prompt_ids, answer_ids=probe.answer_ids, temperature=1.0)
    long = training_pb2.ScoreItem(prompt_ids=[1] * 40, answer_ids=probe.answer_ids, temperature=0.5)

    def score(adapter):
        request = training_pb2.ScoreRequest(adapter=adapter, items=[long, item])
        return list(worker.stub.Score(request, timeout=DEADLINE_S).results[1].logprobs)

    assert score(first.adapter) == pytest.approx(list(probe.logprobs), abs=1e-5)
    assert score([]) == pytest.approx(list(probe.base_logprobs), abs=1e-5)


def test_two_steps_give_the_same_bytes_on_another_worker_that_was_killed_in_each(worker, first, model, taught):
    request = train_request(model)
    child = child_of(request, first, "batch_2")
    second = worker.train(child)[1]
    assert second.report.measurements["optimizer_restored"] == 1
    held: dict[str, bytes] = {}
    for step, expected, phase in ((request, first, "forward_backward"), (child, second, "save")):
        call = taught.now.stub.Train(step, timeout=DEADLINE_S)
        next((event for event in call if event.progress.phase == phase), None)
        taught.now.kill()
        taught.start()
        other = taught.now
        assert all(is_digest(path.name) or path.name == LOCK for path in taught.cache.iterdir())
        missing = other.stub.Missing(training_pb2.MissingRequest(digests=list(held)), timeout=DEADLINE_S).digests
        for name in missing:
            other.put(held[name])
        _, result = other.train(step)
        # Beside another model the base teaches as ever, and what is not taught by it does not name it.
        assert (result.teacher_digest, without_seconds(result)) == ("", without_seconds(expected))
        held |= {file.digest: other.get(file.digest) for file in [*result.adapter, *result.training_state]}


def test_the_same_call_again_repeats_the_result_and_with_another_request_is_taken_anew(worker, first, model):
    progress, again = worker.train(train_request(model))
    assert progress == []
    assert again == first
    progress, other = worker.train(train_request(model, learning_rate=1e-3))
    assert progress != []
    assert [file.digest for file in other.adapter] != [file.digest for file in first.adapter]
    _, restored = worker.train(train_request(model))
    assert without_seconds(restored) == without_seconds(first)


def test_a_second_call_joins_the_running_step_and_another_step_is_refused(worker, model):
    long = train_request(model, call="long", optimizer_steps=80)
    running = worker.stub.Train(long, timeout=DEADLINE_S)
    next(running)
    results: list[training_pb2.TrainResult] = []
    joined = threading.Thread(target=lambda: results.append(worker.train(long)[1]))
    joined.start()
    with pytest.raises(grpc.RpcError) as refused:
        worker.train(train_request(model, call="other"))
    assert refused.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert error_code(refused.value) == ("training_busy", "later")
    results += [event.result for event in running if event.HasField("result")]
    joined.join(DEADLINE_S)
    assert len(results) == 2
    assert results[0] == results[1]


def test_a_cancelled_step_stops_and_leaves_the_worker_free(worker, model):
    endless = train_request(model, call="endless", optimizer_steps=100_000)
    call = worker.stub.Train(endless, timeout=DEADLINE_S)
    next(call)
    assert worker.stub.Status(training_pb2.StatusRequest(), timeout=DEADLINE_S).training == "endless"
    call.cancel()
    until = time.monotonic() + DEADLINE_S
    while worker.stub.Status(training_pb2.StatusRequest(), timeout=DEADLINE_S).training:
        assert time.monotonic() < until
    worker.train(train_request(model, call="after"))


def test_a_parent_that_is_not_there_or_does_not_fit_is_named(worker, first, model):
    request = child_of(train_request(model), first, "absent")
    request.parent_adapter[0].digest = "0" * 64
    with pytest.raises(grpc.RpcError) as refused:
        worker.train(request)
    assert error_code(refused.value) == ("blob_missing", "later")
    with pytest.raises(grpc.RpcError) as refused:
        worker.train(child_of(train_request(model, lora_rank=2), first, "rank"))
    assert error_code(refused.value) == ("adapter_invalid", "never")
    broken = child_of(train_request(model), first, "broken")
    broken.parent_adapter[0].digest = worker.put(b"not a safetensors file" * 100)
    with pytest.raises(grpc.RpcError) as refused:
        worker.train(broken)
    assert error_code(refused.value) == ("adapter_invalid", "never")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda r: r.ClearField("samples"),
        lambda r: setattr(r.config, "method", "grpo"),
        lambda r: setattr(r, "call", ""),
        lambda r: r.probe_prompt_ids.add(ids=[1, 70_000]),
        lambda r: r.probe_prompt_ids.add(ids=[1] * 497),
        lambda r: r.probe_prompt_ids.add(),
        lambda r: r.told_probe_prompt_ids.extend([training_pb2.PromptIds(ids=[1])] * 2),
        lambda r: r.told_probe_prompt_ids.add(ids=[1, 70_000]),
    ],
)
def test_a_request_that_makes_no_sense_is_refused(worker, model, spoil):
    request = train_request(model, call="spoilt")
    spoil(request)
    with pytest.raises(grpc.RpcError) as refused:
        worker.train(request)
    assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert error_code(refused.value) == ("request_invalid", "never")


def test_blobs_are_checked_on_their_way_in(worker):
    with pytest.raises(grpc.RpcError) as refused:
        worker.put(b"bytes", digest="0" * 64)
    assert error_code(refused.value) == ("blob_refused", "never")
    with pytest.raises(grpc.RpcError) as refused:
        worker.get("0" * 64)
    assert error_code(refused.value) == ("blob_missing", "later")


def test_ids_that_the_tokenizer_lacks_leave_out_their_sample_alone_by_name(worker, model):
    request = train_request(model, call="unknown_ids")
    request.samples[1].answer_ids[2] = 70_000
    request.samples[2].teacher_prompt_ids.append(49_152)
    _, result = worker.train(request)
    assert [sample.dropped for sample in result.report.samples] == ["", "unknown_ids", "unknown_ids", ""]
    assert result.report.measurements["samples_trained"] == 2


def test_a_base_that_changed_under_its_name_has_another_digest(worker, first, model, tmp_path):
    digest = worker.stub.Status(training_pb2.StatusRequest(), timeout=DEADLINE_S).base_digest
    assert is_digest(digest)
    assert first.base_digest == digest
    assert load_base_model(model, "tiny", "cpu", "float32").digest == digest
    other = tmp_path / "other"
    shutil.copytree(model, other)
    network = load_model(other).network
    with torch.no_grad():
        next(network.parameters()).view(-1)[0] += 1
    network.save_pretrained(other)
    assert load_base_model(other, "tiny", "cpu", "float32").digest != digest


def test_the_average_of_the_policy_is_kept_beside_the_optimiser_and_goes_on_with_the_next_step(worker, model):
    request = train_request(model, call="ema_1", teacher="ema", ema_decay=0.75)
    one = worker.train(request)[1]
    # Named in the state and not in what engines load.
    assert digests(one.training_state).keys() == {"optimizer.safetensors", "average.safetensors"}
    assert digests(one.adapter).keys() == {"adapter_model.safetensors", "adapter_config.json"}
    two = worker.train(child_of(request, one, "ema_2"))[1]
    averages = [load(worker.get(digests(made.training_state)["average.safetensors"])) for made in (one, two)]
    policies = [load(worker.get(digests(made.adapter)["adapter_model.safetensors"])) for made in (one, two)]
    for name, value in averages[1].items():
        assert torch.allclose(value, 0.75 * averages[0][name] + 0.25 * policies[1][name], atol=1e-7)
    # The first average begins at the base, of whose adapter B is zero.
    b = next(name for name in averages[0] if "lora_B" in name)
    assert torch.allclose(averages[0][b], 0.25 * policies[0][b], atol=1e-7)
    assert float(policies[0][b].abs().max()) > 0

    def taught_by(name):
        child = child_of(train_request(model, teacher=name, ema_decay=0.75), one, f"ema_{name}")
        return worker.train(child)[1].report.measurements["loss_opd"]

    # In its second step it is neither the base nor the policy.
    assert taught_by("ema") == two.report.measurements["loss_opd"]
    assert len({taught_by(name) for name in ("ema", "base", "current")}) == 3


def test_an_average_begins_where_the_policy_stands(worker, first, model):
    def taught_by(name):
        child = child_of(train_request(model, teacher=name, ema_decay=0.75), first, f"begins_{name}")
        return worker.train(child)[1].report.measurements["loss_opd"]

    assert taught_by("ema") == taught_by("current") != taught_by("base")


def test_an_average_of_another_adapter_is_refused(worker, first, model):
    from safetensors.torch import save

    request = child_of(train_request(model, teacher="ema"), first, "average")
    wrong = worker.put(save({"x": torch.zeros(1)}))
    request.parent_training_state.add(name="average.safetensors", digest=wrong, bytes=1)
    with pytest.raises(grpc.RpcError) as refused:
        worker.train(request)
    assert error_code(refused.value) == ("adapter_invalid", "never")


def test_another_model_teaches_where_the_worker_was_given_one_and_its_digest_is_told(worker, first, model, taught):
    with pytest.raises(grpc.RpcError) as refused:
        worker.train(train_request(model, call="no_teacher", teacher="other"))
    assert error_code(refused.value) == ("teacher_missing", "later")
    assert "BACKTALK_TEACHER_MODEL_DIR" in (refused.value.details() or "")
    other = taught.now.train(train_request(model, call="other", teacher="other"))[1]
    assert taught.now.stop() == 0
    assert other.teacher_digest == load_base_model(taught.teacher, "wide", "cpu", "float32").digest
    assert other.report.measurements["loss_opd"] != first.report.measurements["loss_opd"]


def test_a_step_that_is_not_finite_fails_without_files(worker, first, model):
    from safetensors.torch import save

    tensors = load(worker.get(digests(first.adapter)["adapter_model.safetensors"]))
    request = child_of(train_request(model), first, "infinite")
    request.parent_adapter[0].digest = worker.put(save({n: torch.full_like(t, 1e30) for n, t in tensors.items()}))
    with pytest.raises(grpc.RpcError) as refused:
        worker.train(request)
    assert error_code(refused.value) == ("step_not_finite", "never")
    failed = 'backtalk_training_last_step_failed{code="step_not_finite"} 1.0'
    assert failed in status_of(f"http://{worker.health}/metrics")[1]
    worker.train(train_request(model, call="after_the_infinite"))
    assert failed not in status_of(f"http://{worker.health}/metrics")[1]


def test_probe_answers_are_also_those_of_the_base_that_is_shown_the_lessons(worker, model):
    request = train_request(model, call="told_probes")
    told = [[7, *probe.ids] for probe in request.probe_prompt_ids]
    request.told_probe_prompt_ids.extend(training_pb2.PromptIds(ids=ids) for ids in told)
    probes = worker.train(request)[1].probes
    items = [
        training_pb2.ScoreItem(prompt_ids=ids, answer_ids=probe.answer_ids, temperature=1.0)
        for ids, probe in zip(told, probes, strict=True)
    ]
    scored = worker.stub.Score(training_pb2.ScoreRequest(items=items), timeout=DEADLINE_S).results
    for probe, found in zip(probes, scored, strict=True):
        assert list(probe.told_logprobs) == pytest.approx(list(found.logprobs), abs=1e-5)
        assert list(probe.told_logprobs) != pytest.approx(list(probe.base_logprobs), abs=1e-3)


def test_lessons_that_make_a_probe_longer_than_the_context_leave_the_base_alone(worker, model):
    request = train_request(model, call="long_told_probes")
    request.told_probe_prompt_ids.extend(training_pb2.PromptIds(ids=[7] * 497) for _ in request.probe_prompt_ids)
    probes = worker.train(request)[1].probes
    assert len(probes) == len(request.probe_prompt_ids)
    assert all(not probe.told_logprobs and probe.base_logprobs for probe in probes)
