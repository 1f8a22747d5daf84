"""Steps on a service with Tinker's API, through its SDK, against a stand-in that computes with PEFT and autograd alone:
the weights are those of a step taken here, and what the service cannot do is refused by name."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from remote_orders import PROBES, SAMPLED, SEED, Remote, order_of, samples_of
from tinker_server import NAME, TinkerServer
from tiny_policy import RECIPE, VOCABULARY, changed, items_of, silent, tiny_model, tiny_shape

from backtalk_worker.model.load import LoadedModel
from backtalk_worker.training.domain.adapter import adapted
from backtalk_worker.training.domain.batch import prepare_batch
from backtalk_worker.training.domain.optimizer import make_optimizer
from backtalk_worker.training.domain.sampled_step import not_honoured
from backtalk_worker.training.domain.step import take_step
from backtalk_worker.training.domain.teacher import Teacher
from backtalk_worker.training.errors import (
    ParentElsewhereError,
    RecipeNotHonouredError,
    RequestInvalidError,
    ServiceRefusedError,
    ServiceUnavailableError,
    StepCancelledError,
    StepNotFiniteError,
)
from backtalk_worker.training.inputs.decode import ScoreOrder
from backtalk_worker.training.inputs.work import train_alone
from backtalk_worker.training.outputs.adapter_archive import download
from backtalk_worker.training.outputs.base_model import BaseModel
from backtalk_worker.training.outputs.blob_cache import BlobCache
from backtalk_worker.training.outputs.version_files import VersionFiles


def local_base():
    """The model in this process, of which nothing is read before the parent is looked at."""
    model = tiny_model()
    loaded = LoadedModel(model, None, Path(), 64, VOCABULARY, (0,))  # type: ignore[arg-type]
    return BaseModel("tiny", "float64", "d" * 64, loaded)


@pytest.fixture(scope="module")
def server():
    service = TinkerServer(tiny_model(), RECIPE.lora_alpha)
    with service.serving():
        yield service


@pytest.fixture
def remote(server, tmp_path):
    server.asked.clear()
    server.fails.clear()
    return Remote(server, BlobCache(tmp_path / "blobs", 1 << 30))


def taken_here(recipe, steps=1, samples=None):
    """Weights before, and after each of several steps on the same batch; and the last outcome."""
    model = tiny_model()
    with adapted(model, tiny_shape(model), SEED) as policy:
        optimizer = make_optimizer(policy, recipe, {})
        weights, outcome = [policy.tensors()], None
        for _ in range(steps):
            items = prepare_batch(samples or samples_of(), recipe, 64, VOCABULARY)
            outcome = take_step(Teacher(policy), optimizer, items, recipe, SEED, silent)
            weights.append(policy.tensors())
        return weights, outcome


def assert_same(found, expected, start):
    """As far as each step moves, to a millionth of it: numbers go over the wire in float32."""
    assert found.keys() == expected.keys()
    moved = max(float((expected[name] - start[name]).abs().max()) for name in expected)
    assert moved > 1e-4
    for name, value in expected.items():
        assert float((found[name].double() - value).abs().max()) < 1e-5 * moved, name


METHODS = {
    "binary": replace(SAMPLED, method="binary", kl_beta=0.0),
    "opd": replace(SAMPLED, method="opd", kl_beta=0.0),
    "combined": SAMPLED,
    "without a clip": replace(SAMPLED, opd_advantage_clip=0.0),
    "on the first tokens": replace(SAMPLED, distill_share=0.5),
    "with weight decay": replace(SAMPLED, weight_decay=0.1),
}


@pytest.mark.parametrize("recipe", METHODS.values(), ids=METHODS.keys())
def test_a_step_gives_the_weights_of_a_step_taken_here(remote, recipe):
    (start, expected), outcome = taken_here(recipe)
    assert outcome is not None
    result, found = remote.train(order_of(recipe))
    assert_same(found, expected, start)
    measured = result.report.measurements
    for name in ("loss", "loss_binary", "loss_opd", "loss_kl", "v_mean", "ess", "masked_share", "tokens"):
        assert measured[name] == pytest.approx(outcome.measurements[name], rel=1e-4, abs=1e-7), name
    # Of the head's input there, here of the weights.
    assert measured["gradient_norm"] == pytest.approx(outcome.measurements["gradient_norm"], rel=1e-4)
    assert "entropy" not in measured


def unlikely_once():
    """One token that the sampler found twenty times less likely than the policy."""
    first, *others = samples_of()
    return (replace(first, logprobs=(first.logprobs[0] - 3, *first.logprobs[1:])), *others)


LEFT_OUT = {
    "tokens out of the bounds of v": (SAMPLED, unlikely_once()),
    "stale answers": (replace(SAMPLED, staleness_max=0.5), unlikely_once()),
    "praise of cut answers": (replace(SAMPLED, method="binary"), samples_of(cut=True)),
}


@pytest.mark.parametrize(("recipe", "samples"), LEFT_OUT.values(), ids=LEFT_OUT.keys())
def test_what_a_step_here_leaves_out_is_left_out_there(remote, recipe, samples):
    (start, expected), outcome = taken_here(recipe, samples=samples)
    result, found = remote.train(order_of(recipe, samples))
    assert_same(found, expected, start)
    assert outcome is not None
    assert [one.dropped for one in result.report.samples] == [one.dropped for one in outcome.samples]


def test_a_guard_of_the_batch_takes_no_term_there_either(remote, server):
    result, _ = remote.train(order_of(replace(SAMPLED, masked_share_max=0.01), unlikely_once()))
    measured = result.report.measurements
    assert (measured["guard_masked_share"], measured["gradient_norm"], measured["loss"]) == (1, 0, 0)
    assert "optim_step" not in server.asked


@pytest.mark.parametrize("bound", [1e9, 0.05])
def test_the_next_step_goes_on_with_weights_and_optimiser(remote, bound):
    recipe = replace(SAMPLED, gradient_clip=bound)
    (start, _, expected), _ = taken_here(recipe, steps=2)
    first, _ = remote.train(order_of(recipe))
    result, found = remote.train(order_of(recipe, parent=first))
    assert_same(found, expected, start)
    assert (first.report.measurements["optimizer_restored"], result.report.measurements["optimizer_restored"]) == (0, 1)


def test_a_server_like_that_of_skyrl_gives_the_same_weights(tmp_path):
    (start, _, expected), _ = taken_here(SAMPLED, steps=2)
    service = TinkerServer(tiny_model(), RECIPE.lora_alpha, like="skyrl")
    with service.serving():
        remote = Remote(service, BlobCache(tmp_path, 1 << 30), reduction="mean")
        first, _ = remote.train(order_of(probes=PROBES))
        result, found = remote.train(order_of(parent=first))
    assert_same(found, expected, start)
    assert len(first.probes) == len(PROBES)
    # It has places for a few, and each step gives its own back.
    assert service.running == 0
    assert "gradient_norm" not in result.report.measurements


def test_a_step_over_its_bound_is_taken_again_from_its_parent_with_less(remote):
    (start, whole), _ = taken_here(SAMPLED)
    result, found = remote.train(order_of(replace(SAMPLED, step_bound=1e-3)))
    measured = result.report.measurements
    scale = measured["step_scale"]
    assert 0 < scale < 1 and 0 < measured["kl_step"] <= 1e-3
    assert_same(found, {name: start[name] + scale * (whole[name] - start[name]) for name in whole}, start)


def test_a_batch_in_which_nothing_pulls_takes_no_step(remote, server):
    neutral = tuple(replace(sample, advantage=0.0, teacher_prompt_ids=()) for sample in samples_of())
    result, _ = remote.train(order_of(replace(SAMPLED, kl_beta=0.0), neutral))
    assert result.report.measurements["gradient_norm"] == 0
    assert "optim_step" not in server.asked


def test_answers_at_another_temperature_are_left_out_and_said_so(remote):
    first, *others = samples_of()
    result, _ = remote.train(order_of(samples=(replace(first, temperature=0.8), *others)))
    assert [sample.dropped for sample in result.report.samples] == ["temperature", "", ""]


def test_an_answer_that_leaves_the_service_no_room_for_one_token_more_is_left_out(remote):
    whole, fitting = (
        changed(item, temperature=1.0, teacher_prompt_ids=()).sample
        for item in items_of(tiny_model(), ((40, 24), (39, 24)))
    )
    result, _ = remote.train(order_of(samples=(whole, fitting)))
    assert [sample.dropped for sample in result.report.samples] == ["too_long", ""]


def test_where_lessons_were_shown_the_policy_answers_the_plain_prompt_there(remote, server):
    first, *others = samples_of()
    shown = replace(first, shown=True, temperature=0.8, answer_ids=(), logprobs=())
    result, _ = remote.train(order_of(samples=(shown, *others)))
    assert result.report.samples[0].dropped == "" and result.report.samples[0].answer_replaced
    assert not [path for path in server.kept if "sampler_weights" in path]


def test_probes_are_of_the_new_weights_and_the_base(remote):
    result, found = remote.train(order_of(probes=PROBES, told_probes=((1, 4, 5, 6), (1, 7, 8))))
    model = tiny_model()
    for probe, prompt, told in zip(result.probes, PROBES, ((1, 4, 5, 6), (1, 7, 8)), strict=True):
        assert tuple(probe.prompt_ids) == prompt and 0 < len(probe.answer_ids) <= 16
        with adapted(model, tiny_shape(model), SEED) as policy:
            own = _logprobs(model, prompt, probe.answer_ids)
            policy.set_tensors({name: value.double() for name, value in found.items()})
            new = _logprobs(model, prompt, probe.answer_ids)
        base = _logprobs(model, told, probe.answer_ids)
        assert list(probe.logprobs) == pytest.approx(new, abs=1e-4)
        assert list(probe.base_logprobs) == pytest.approx(own, abs=1e-4)
        assert list(probe.told_logprobs) == pytest.approx(base, abs=1e-4)


def _logprobs(model, prompt, answer):
    ids = [*prompt, *answer]
    with torch.no_grad():
        rows = model(input_ids=torch.tensor([ids])).logits[0].log_softmax(-1)[len(prompt) - 1 : -1]
    return rows.gather(-1, torch.tensor(list(answer))[:, None])[:, 0].tolist()


def test_what_engines_load_names_rank_alpha_and_layers(remote):
    result, _ = remote.train(order_of())
    names = {file.name: file.digest for file in result.adapter}
    config = json.loads(remote.blobs.get(names["adapter_config.json"]))
    assert (config["r"], config["lora_alpha"]) == (RECIPE.lora_rank, RECIPE.lora_alpha)
    assert config["target_modules"] == list(tiny_shape(tiny_model()).target_modules)
    assert (result.base_model, result.dtype, result.base_digest) == ("tiny", "float32", "d" * 64)


def test_a_recipe_that_asks_for_whole_distributions_is_refused_with_what_to_set(remote, server):
    whole = replace(RECIPE, kl_beta=0.1, teacher="ema", off_policy="answer_anew", optimizer_steps=4)
    expected = ["opdForm=sampled", "klForm=sampled", "teacher=base", "offPolicy=drop", "optimizerSteps=1"]
    assert not_honoured(whole) == expected
    assert not_honoured(replace(whole, method="binary", kl_beta=0.0)) == expected[3:]
    with pytest.raises(RecipeNotHonouredError, match="set opdForm=sampled, klForm=sampled, teacher=base"):
        remote.train(order_of(whole))
    assert server.asked == []


def test_of_several_hints_the_first_teaches_there(remote, server):
    several, _ = remote.train(order_of(samples=samples_of(other_teacher_prompts=((), (1, 2)))))
    assert several.adapter == remote.train(order_of())[0].adapter


def test_another_alpha_than_the_service_has_is_refused_for_good_before_a_step_is_paid_for(remote, server):
    for _ in range(2):
        with pytest.raises(ServiceRefusedError, match=f"set loraRank=2, loraAlpha={RECIPE.lora_alpha}"):
            remote.train(order_of(replace(SAMPLED, lora_alpha=16)))
    assert not {"forward", "forward_backward", "optim_step", "save_weights"} & set(server.asked)
    assert not [path for path in server.kept if "sampler_weights" in path]


def test_rank_and_alpha_of_the_service_are_looked_at_once(remote, server):
    for times in (2, 3):
        remote.train(order_of())
        assert server.asked.count("save_weights_for_sampler") == times


def test_a_parent_that_was_trained_here_cannot_be_gone_on_with_there(remote):
    with pytest.raises(ParentElsewhereError, match="trained by another backend"):
        remote.train(order_of(parent_adapter={"adapter_model.safetensors": "a" * 64}))


def test_weights_that_are_no_numbers_are_not_kept(remote, server):
    server.spoils = True
    try:
        with pytest.raises(StepNotFiniteError, match="a weight is not finite"):
            remote.train(order_of())
    finally:
        server.spoils = False


def test_a_version_that_was_trained_there_cannot_be_gone_on_with_here(remote):
    order = order_of(parent=remote.train(order_of())[0])
    with pytest.raises(ParentElsewhereError, match="trained by a training service"):
        train_alone(order, local_base(), VersionFiles(remote.blobs), silent)


def test_a_key_of_another_service_in_the_environment_goes_nowhere(server, tmp_path, monkeypatch):
    monkeypatch.setenv("TINKER_API_KEY", "tml-of-another")
    result, _ = Remote(server, BlobCache(tmp_path, 1 << 30)).train(order_of())
    assert result.report.measurements["gradient_norm"] > 0


def test_a_parent_that_the_service_lost_is_refused(remote):
    state = remote.backend.files.write_remote_path("tinker://run-x/weights/gone")
    order = order_of(parent_adapter={"adapter_model.safetensors": "a" * 64})
    with pytest.raises(ServiceRefusedError, match="no such checkpoint"):
        remote.train(replace(order, parent_training_state={file.name: file.digest for file in state}))


def test_a_model_that_is_not_trained_there_is_refused(server, tmp_path):
    with pytest.raises(ServiceRefusedError, match="org/other is not trained here"):
        Remote(server, BlobCache(tmp_path, 1 << 30), model="org/other").train(order_of())
    result, _ = Remote(server, BlobCache(tmp_path, 1 << 30), model=NAME).train(order_of())
    assert result.report.measurements["gradient_norm"] > 0


def test_what_the_service_says_to_a_first_call_is_a_matter_for_the_operator(server, tmp_path):
    server.fails["create_session"] = 404
    try:
        with pytest.raises(ServiceUnavailableError, match="HTTP 404, create_session is broken"):
            Remote(server, BlobCache(tmp_path, 1 << 30)).train(order_of())
    finally:
        server.fails.clear()


@pytest.mark.parametrize("trained", [True, False])
def test_an_output_head_is_left_away_where_it_was_not_trained_and_refused_where_it_was(remote, server, trained):
    server.head = 1.0 if trained else 0.0
    try:
        if trained:
            with pytest.raises(ServiceRefusedError, match="trained the output head"):
                remote.train(order_of())
        else:
            assert not [name for name in remote.train(order_of())[1] if "lm_head" in name]
    finally:
        server.head = None


def test_an_archive_is_fetched_from_the_web_alone():
    with pytest.raises(ServiceRefusedError, match="at no web address"):
        download("file:///etc/hostname")


def test_a_key_that_is_not_taken_is_a_matter_for_the_operator(server, tmp_path):
    with pytest.raises(ServiceUnavailableError, match="does not take the key of BACKTALK_TINKER_KEY"):
        Remote(server, BlobCache(tmp_path, 1 << 30), key="tml-other").train(order_of())


@pytest.mark.parametrize("route", ["create_session", "optim_step", "retrieve_future"])
def test_a_service_that_fails_or_is_away_is_given_up_at_the_deadline(server, tmp_path, route):
    server.fails[route] = 503
    try:
        with pytest.raises(ServiceUnavailableError, match="a call took more than 2 s"):
            Remote(server, BlobCache(tmp_path, 1 << 30), call_seconds=2).train(order_of())
    finally:
        server.fails.clear()


def test_a_step_that_is_not_wanted_any_more_is_not_waited_for(server, tmp_path):
    def gone(*_):
        raise StepCancelledError

    server.fails["create_session"] = 503
    try:
        with pytest.raises(StepCancelledError):
            Remote(server, BlobCache(tmp_path, 1 << 30)).train(order_of(), gone)
    finally:
        server.fails.clear()


def test_the_base_is_scored_and_nothing_else(remote):
    def scored(**fields):
        given = {"adapter": {}, "prompts": (PROBES[0],), "answers": ((1, 2),), "temperatures": (1.0,)}
        return remote.backend.score(ScoreOrder(**given | fields), lambda: None)

    (row,) = scored().results
    assert list(row.logprobs) == pytest.approx(_logprobs(tiny_model(), PROBES[0], (1, 2)), abs=1e-5)
    for fields in ({"temperatures": (0.8,)}, {"adapter": {"adapter_model.safetensors": "a" * 64}}):
        with pytest.raises(RequestInvalidError, match="the base alone is scored"):
            scored(**fields)
