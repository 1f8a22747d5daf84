"""What a step that came to nothing leaves at a service with Tinker's API: no checkpoint, and no place that is taken."""

import pytest
from remote_orders import PROBES, Remote, order_of, samples_of
from tinker_server import TinkerServer
from tiny_policy import RECIPE, tiny_model

from backtalk_worker.training.errors import ServiceRefusedError, StepCancelledError
from backtalk_worker.training.outputs import tinker_service
from backtalk_worker.training.outputs.blob_cache import BlobCache


@pytest.fixture(scope="module")
def server():
    service = TinkerServer(tiny_model(), RECIPE.lora_alpha)
    with service.serving():
        yield service


@pytest.fixture
def remote(server, tmp_path, monkeypatch):
    # So often that a step is given up while the service still does what it was asked for.
    monkeypatch.setattr(tinker_service, "LOOK_S", 0.001)
    server.asked.clear()
    server.fails.clear()
    remote = Remote(server, BlobCache(tmp_path / "blobs", 1 << 30))
    remote.backend.seen = RECIPE.lora_rank, RECIPE.lora_alpha
    return remote


ROUTES = ["create_model", "forward_backward", "save_weights", "save_weights_for_sampler", "asample"]


@pytest.mark.parametrize("route", ROUTES)
def test_a_step_that_is_not_wanted_any_more_leaves_nothing_there(remote, server, route):
    def gone(*_):
        if route in server.asked:
            raise StepCancelledError

    with pytest.raises(StepCancelledError):
        remote.train(order_of(probes=PROBES), gone)
    assert server.kept == []
    assert "unload_model" in server.asked


def test_what_was_saved_to_be_looked_at_or_to_answer_with_goes_with_a_step_that_is_not_wanted_any_more(remote, server):
    def gone(*_):
        if "save_weights_for_sampler" in server.asked:
            raise StepCancelledError

    shown = samples_of(shown=True, answer_ids=(), logprobs=())
    for seen in (None, remote.backend.seen):
        server.asked.clear()
        remote.backend.seen = seen
        with pytest.raises(StepCancelledError):
            remote.train(order_of(samples=shown), gone)
        assert server.kept == []
        assert "unload_model" in server.asked


@pytest.mark.parametrize("route", ["forward_backward", "save_weights", "save_weights_for_sampler"])
def test_a_step_that_fails_there_leaves_nothing_there(remote, server, route):
    server.fails[route] = 422
    with pytest.raises(ServiceRefusedError):
        remote.train(order_of())
    assert server.kept == []
    assert "unload_model" in server.asked
