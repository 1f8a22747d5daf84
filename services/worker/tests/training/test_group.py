"""Two processes that take one step together, as the setting starts them: gloo on the CPU, float64, real calls."""

import os
import select
import signal
from pathlib import Path

import grpc
import pytest
from safetensors.torch import load
from torch._C._distributed_c10d import TCPStore
from worker_process import (
    DEVICE,
    WorkerProcess,
    child_of,
    digests,
    error_code,
    loaded_by,
    start_worker,
    train_request,
    without_seconds,
    write_tiny_model,
)

from backtalk_worker.gen.backtalk.v1 import training_pb2
from backtalk_worker.training.outputs.process_group import LEADERS

pytestmark = pytest.mark.skipif(DEVICE != "cpu", reason="each process would take a card of its own")

GROUP_SECONDS = 20

BATCHES = {
    "reward": {"method": "binary"},
    "sampled-distillation": {"method": "opd", "opd_form": "sampled"},
    "likeliest-tokens": {"method": "opd", "opd_form": "topk"},
    "told-answers-too": {"method": "opd", "opd_form": "hybrid"},
    "both-and-full-kl": {"kl_beta": 0.2},
    "both-and-sampled-kl": {"kl_beta": 0.2, "kl_form": "sampled", "divergence": "jsd"},
    "a-step-that-is-shrunk": {"step_bound": 1e-4},
    "several-steps": {"optimizer_steps": 3},
    "taught-by-its-average": {"opd_form": "hybrid", "teacher": "ema", "ema_decay": 0.5},
    "taught-by-another-model": {"opd_form": "hybrid", "teacher": "other"},
}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiny")
    write_tiny_model(folder)
    return folder


@pytest.fixture(scope="module")
def beside(tmp_path_factory):
    """What all of them are given beside the model that they train."""
    folder = tmp_path_factory.mktemp("wider")
    write_tiny_model(folder, seed=3, width=48)
    return {"BACKTALK_TEACHER_MODEL_DIR": str(folder)}


@pytest.fixture(scope="module")
def alone(model, beside, tmp_path_factory):
    running = start_worker(model, tmp_path_factory.mktemp("blobs"), BACKTALK_DTYPE="float64", **beside)
    yield running
    running.kill()


class Pair:
    """The worker of two processes that runs now."""

    def __init__(self, model: Path, cache: Path, **environment: str) -> None:
        self.cache = cache
        self.now = start_worker(
            model,
            cache,
            BACKTALK_DTYPE="float64",
            BACKTALK_TRAINING_PROCESSES="2",
            BACKTALK_TRAINING_GROUP_SECONDS=str(GROUP_SECONDS),
            **environment,
        )

    def files(self) -> set[str]:
        return {path.name for path in self.cache.iterdir()}


@pytest.fixture(scope="module")
def first(alone, model):
    """A version of the one process."""
    return alone.train(train_request(model))[1]


def with_files_of(alone, first, pair):
    for file in [*first.adapter, *first.training_state]:
        pair.now.put(alone.get(file.digest))
    return pair


@pytest.fixture(scope="module")
def pair(alone, first, model, beside, tmp_path_factory):
    running = with_files_of(alone, first, Pair(model, tmp_path_factory.mktemp("blobs"), **beside))
    yield running
    # SIGKILL, which nothing can answer: the processes end with their launcher.
    running.now.kill()


@pytest.fixture(scope="module")
def sharded(alone, first, model, beside, tmp_path_factory):
    """A pair of which each holds half of each layer, and lays its samples end to end."""
    both = {"BACKTALK_TRAINING_SHARDING": "on", "BACKTALK_TRAINING_PACKING": "on"}
    running = with_files_of(alone, first, Pair(model, tmp_path_factory.mktemp("blobs"), **both, **beside))
    yield running
    running.now.kill()


def tensors(worker: WorkerProcess, files):
    return {name: load(worker.get(digest)) for name, digest in digests(files).items() if name.endswith("tensors")}


def batch(model, first, name):
    """Answers with a teacher and without, praised and blamed, one of another tokenizer; from a version that differs
    from the base."""
    request = child_of(train_request(model, **BATCHES[name]), first, name)
    request.samples[0].ClearField("teacher_prompt_ids")
    request.samples[0].advantage, request.samples[0].cut = 1.0, False
    request.samples[3].answer_ids[0] = 70_000
    return request


def expect_same(alone, pair, request):
    """The step of the pair is that of the one process, in every tensor and every figure."""
    one, two = alone.train(request)[1], pair.now.train(request)[1]
    for files in ("adapter", "training_state"):
        expected, found = (tensors(worker, getattr(r, files)) for worker, r in ((alone, one), (pair.now, two)))
        for file, values in expected.items():
            assert max(float((found[file][key] - value).abs().max()) for key, value in values.items()) < 1e-6
    measured = dict(two.report.measurements) | {"seconds": one.report.measurements["seconds"]}
    assert measured == pytest.approx(dict(one.report.measurements), rel=1e-6, abs=1e-9)
    assert measured["step_scale"] > 0
    assert [x.dropped for x in two.report.samples] == [x.dropped for x in one.report.samples]
    assert [x.divergence for x in two.report.samples] == pytest.approx([x.divergence for x in one.report.samples])
    assert [p.answer_ids for p in two.probes] == [p.answer_ids for p in one.probes]
    assert list(two.probes[0].logprobs) == pytest.approx(list(one.probes[0].logprobs), abs=1e-6)


@pytest.mark.parametrize("name", BATCHES)
def test_two_processes_give_what_one_gives(alone, pair, model, first, name):
    expect_same(alone, pair, batch(model, first, name))


@pytest.mark.parametrize("name", BATCHES)
def test_two_processes_that_share_the_base_give_what_one_gives_with_all_of_it(alone, sharded, model, first, name):
    expect_same(alone, sharded, batch(model, first, name))


def test_a_process_without_samples_passes_through_a_shared_base_with_the_other(alone, sharded, model, first):
    request = batch(model, first, "both-and-full-kl")
    request.call = "one-sample"
    del request.samples[1:]
    # Without a gradient of its own or of the other.
    expect_same(alone, sharded, request)
    nothing = batch(model, first, "sampled-distillation")
    nothing.call = "no-gradient"
    for sample in nothing.samples:
        sample.ClearField("teacher_prompt_ids")
    assert sharded.now.train(nothing)[1].report.measurements["step_scale"] == 0


def test_a_shared_base_scores_what_a_whole_one_scores(alone, sharded, first):
    probe = first.probes[0]
    item = training_pb2.ScoreItem(prompt_ids=probe.prompt_ids, answer_ids=probe.answer_ids, temperature=1.0)
    for adapter, expected in ((first.adapter, probe.logprobs), ([], probe.base_logprobs)):
        request = training_pb2.ScoreRequest(adapter=adapter, items=[item])
        found = sharded.now.stub.Score(request, timeout=GROUP_SECONDS).results[0].logprobs
        assert list(found) == pytest.approx(list(expected), abs=1e-6)


def refused(worker: WorkerProcess, request, at=lambda: None):
    """Code and retry of a step that fails; `at` is called once it computes gradients."""
    with pytest.raises(grpc.RpcError) as failed:
        for event in worker.stub.Train(request, timeout=10 * GROUP_SECONDS):
            if event.progress.phase == "forward_backward":
                at()
    return error_code(failed.value)


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "standing-still"])
def test_the_batch_of_a_process_that_went_is_trained_again_with_the_same_result(pair, model, first, end):
    request = batch(model, first, "several-steps")
    request.config.optimizer_steps = 12
    undisturbed = pair.now.train(request)[1]
    request.call = f"{end.name}"
    held, other = pair.files(), pair.now.ranks[1]
    assert refused(pair.now, request, at=lambda: os.kill(other, end)) == ("group_lost", "later")
    assert pair.files() == held
    pair.now = pair.now.started_again()
    assert other not in pair.now.ranks.values()
    assert without_seconds(pair.now.train(request)[1]) == without_seconds(undisturbed)


def test_a_step_that_one_process_gives_up_leaves_the_group_ready_for_the_next(pair, model, first):
    broken = batch(model, first, "reward")
    broken.parent_adapter[0].digest = pair.now.put(b"not a safetensors file" * 100)
    assert refused(pair.now, broken) == ("adapter_invalid", "never")
    ranks = dict(pair.now.ranks)
    pair.now.train(batch(model, first, "reward"))
    assert all(Path(f"/proc/{pid}").exists() for pid in ranks.values())


def test_what_starts_the_processes_loads_no_models(pair):
    assert "tokenizers" in loaded_by(pair.now.ranks[0])
    assert "tokenizers" not in loaded_by(pair.now.process.pid)


def store_of(pair: Pair) -> TCPStore:
    """The store of the launcher, as a younger group would reach it."""
    environment = Path(f"/proc/{pair.now.ranks[0]}/environ").read_bytes().split(b"\0")
    known = dict(one.decode().split("=", 1) for one in environment if one)
    return TCPStore(known["MASTER_ADDR"], int(known["MASTER_PORT"]), is_master=False, wait_for_workers=False)


def test_a_group_that_is_no_longer_the_newest_gives_no_result(pair, model):
    store_of(pair).add(LEADERS, 1)
    assert refused(pair.now, train_request(model, call="late")) == ("group_lost", "later")
    pair.now = pair.now.started_again()
    pair.now.train(train_request(model, call="late"))


def test_no_process_outlives_its_launcher(pair, model):
    launcher, ranks = pair.now.process, pair.now.ranks
    one = os.pidfd_open(ranks[0]), os.pidfd_open(ranks[1])
    launcher.kill()
    launcher.wait()
    for descriptor in one:
        assert wait_for_end(descriptor)


def wait_for_end(descriptor: int) -> bool:
    """A descriptor of a process can be read once it has ended."""
    ended, _, _ = select.select([descriptor], [], [], GROUP_SECONDS)
    os.close(descriptor)
    return bool(ended)
