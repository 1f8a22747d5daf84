"""A whole step: the bound, the optimiser's state, what is dropped, what is measured, when it fails."""

import math
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load, save
from tiny_policy import RECIPE, changed, disturb, items_of, logits_of, silent, tiny_model, tiny_shape

from backtalk_worker.training.domain.adapter import adapted
from backtalk_worker.training.domain.group import Alone
from backtalk_worker.training.domain.optimizer import make_optimizer, optimizer_state, state_mismatch
from backtalk_worker.training.domain.step import take_step
from backtalk_worker.training.domain.step_bound import ANSWERS_MAX, drawn
from backtalk_worker.training.domain.teacher import Teacher
from backtalk_worker.training.errors import StepCancelledError, StepNotFiniteError

LENGTHS = ((5, 4), (9, 2), (3, 8), (6, 6))


def step(recipe, items, weights=None, state=None, progress=silent, seed=1):
    model = tiny_model()
    with adapted(model, tiny_shape(model), seed) as policy:
        disturb(policy)
        if weights is not None:
            policy.set_tensors(weights)
        before = policy.tensors()
        optimizer = make_optimizer(policy, recipe, state or {})
        outcome = take_step(Teacher(policy, recipe.teacher), optimizer, items, recipe, seed, progress)
        return outcome, before, policy.tensors(), optimizer_state(policy, optimizer)


def bytes_of(tensors):
    return save(tensors, metadata={"format": "pt"})


def answer_kl(weights_old, weights_new, items):
    """KL(π_old ‖ π_new) at T = 1, nats an answer, from whole logits."""
    rows = []
    for weights in (weights_old, weights_new):
        model = tiny_model()
        with adapted(model, tiny_shape(model), 1) as policy, torch.no_grad():
            policy.set_tensors(weights)
            samples = [item.sample for item in items]
            logits = [logits_of(policy.network.model, (*s.prompt_ids, *s.answer_ids)) for s in samples]
            rows.append([row[len(s.prompt_ids) - 1 : -1].softmax(-1) for row, s in zip(logits, samples, strict=True)])
    return sum(float((p * (p / q).log()).sum()) for p, q in zip(*rows, strict=True)) / len(items)


def start_of(items):
    """The same weights to begin with, whatever the seed of a step."""
    _, before, _, _ = step(RECIPE, items)
    return before


@pytest.mark.parametrize("steps", [1, 3])
def test_step_bound_is_kept_and_the_measured_divergence_is_the_exact_one(steps: int):
    items = items_of(tiny_model(), LENGTHS)
    recipe = replace(RECIPE, learning_rate=0.1, optimizer_steps=steps)
    free, before, after, _ = step(recipe, items)
    assert free.measurements["step_scale"] == 1
    assert free.measurements["kl_step"] == pytest.approx(answer_kl(before, after, items), rel=1e-9)
    bound = free.measurements["kl_step"] / 20
    bounded, before, after, _ = step(replace(recipe, step_bound=bound), items)
    assert 0.01 < bounded.measurements["step_scale"] < 1
    assert bounded.measurements["kl_step"] <= bound
    assert bounded.measurements["kl_step"] == pytest.approx(answer_kl(before, after, items), rel=1e-9)


def test_a_state_in_other_numbers_is_gone_on_with():
    items = items_of(tiny_model(), LENGTHS)
    _, _, _, state = step(RECIPE, items)
    narrow = {name: value.float() for name, value in state.items()}
    outcome, _, _, after = step(RECIPE, items, state=narrow)
    assert outcome.measurements["step_scale"] == 1
    assert {value.dtype for name, value in after.items() if name != "step"} == {torch.float64}


def test_two_steps_in_one_run_equal_two_runs_with_the_state_saved_between():
    items = items_of(tiny_model(), LENGTHS)
    recipe = replace(RECIPE, method="opd")
    _, _, together, together_state = step(replace(recipe, optimizer_steps=2), items)
    _, _, first, state = step(recipe, items)
    _, _, second, second_state = step(recipe, items, load(bytes_of(first)), load(bytes_of(state)))
    assert bytes_of(second) == bytes_of(together)
    assert bytes_of(second_state) == bytes_of(together_state)
    assert second_state["step"].item() == 2
    _, _, forgetful, _ = step(recipe, items, first)
    assert bytes_of(forgetful) != bytes_of(together)


def test_the_first_update_is_that_of_adam_written_out():
    items = items_of(tiny_model(), LENGTHS)
    recipe = replace(RECIPE, gradient_clip=1e9)
    outcome, before, after, state = step(recipe, items)
    assert outcome.measurements["gradient_norm"] > 0
    for name, start in before.items():
        g = state[f"{name}.exp_avg"] / (1 - 0.9)
        expected = start - 1e-2 * g / (g.abs() + 1e-8)
        assert torch.allclose(after[name], expected, atol=1e-9)


def test_gradient_is_clipped_to_its_norm():
    items = items_of(tiny_model(), LENGTHS)
    _, _, _, state = step(replace(RECIPE, gradient_clip=1e-3), items)
    moments = [value / (1 - 0.9) for name, value in state.items() if name.endswith(".exp_avg")]
    assert float(torch.cat([m.flatten() for m in moments]).norm()) == pytest.approx(1e-3, rel=1e-3)


def test_a_batch_without_gradient_moves_nothing_not_even_by_momentum():
    items = items_of(tiny_model(), LENGTHS)
    _, _, first, state = step(RECIPE, items)
    silent_items = [changed(replace(item, teacher_prompt=()), advantage=0.0) for item in items]
    outcome, _, after, after_state = step(RECIPE, silent_items, first, state)
    assert outcome.measurements["step_scale"] == 0
    assert bytes_of(after) == bytes_of(first)
    assert bytes_of(after_state) == bytes_of(state)


def test_a_batch_of_which_everything_is_dropped_moves_nothing_and_says_why():
    items = [replace(item, trained=False, dropped="too_long") for item in items_of(tiny_model(), LENGTHS)]
    outcome, before, after, _ = step(RECIPE, items)
    assert [sample.dropped for sample in outcome.samples] == ["too_long"] * 4
    assert bytes_of(before) == bytes_of(after)


def test_shares_of_the_gradient_are_of_turns_and_add_up_to_one():
    items = items_of(tiny_model(), LENGTHS)
    taught = replace(RECIPE, method="opd", opd_form="hybrid")
    told = changed(items[1], told=True)
    silent_one = replace(items[0], trained=False, dropped="too_long")
    outcome, *_ = step(taught, [silent_one, *items[1:], told])
    by_turn = {sample.turn: sample.gradient_share for sample in outcome.samples}
    assert len(by_turn) == len(items)
    assert by_turn[items[0].sample.turn] == 0
    assert sum(by_turn.values()) == pytest.approx(1)
    alone, *_ = step(taught, [silent_one, *items[1:]])
    before = {sample.turn: sample.gradient_share for sample in alone.samples}
    # What the teacher answered in its place counts for the turn.
    assert by_turn[told.sample.turn] > before[told.sample.turn]
    nothing, *_ = step(replace(RECIPE, method="binary"), [changed(item, advantage=0.0) for item in items])
    assert [sample.gradient_share for sample in nothing.samples] == [0.0] * len(items)


def stale(item):
    """Every token was less likely to its sampler than it is to the present weights, none of them absurdly."""
    return changed(item, logprobs=tuple(value - 0.6 for value in item.sample.logprobs))


def test_a_stale_answer_gives_no_reward_and_no_sampled_distillation_and_is_counted():
    for recipe in (replace(RECIPE, method="binary"), replace(RECIPE, method="opd", opd_form="sampled")):
        items = [stale(item) for item in items_of(tiny_model(), LENGTHS)]
        outcome, before, after, _ = step(replace(recipe, staleness_max=0.1), items)
        assert [sample.dropped for sample in outcome.samples] == ["stale"] * len(items)
        assert all(sample.staleness > 0.1 for sample in outcome.samples)
        assert outcome.measurements["samples_stale"] == len(items)
        assert bytes_of(before) == bytes_of(after)
        unbounded, *_ = step(recipe, items)
        assert {sample.dropped for sample in unbounded.samples} == {""}
        assert unbounded.measurements["step_scale"] > 0


def test_a_stale_answer_still_teaches_by_its_whole_distributions():
    recipe = replace(RECIPE, method="opd", opd_form="full")
    items = [stale(item) for item in items_of(tiny_model(), LENGTHS)]
    _, _, unbounded, _ = step(recipe, items)
    outcome, _, bounded, _ = step(replace(recipe, staleness_max=0.1), items)
    assert outcome.measurements["samples_stale"] == len(items)
    assert bytes_of(bounded) == bytes_of(unbounded)


def test_a_policy_that_teaches_itself_without_a_hint_has_nothing_to_learn_and_the_base_would_pull_it_back():
    items = [replace(item, teacher_prompt=item.sample.prompt_ids) for item in items_of(tiny_model(), LENGTHS)]
    recipe = replace(RECIPE, method="opd", learning_rate=1e-6)
    itself, _, _, _ = step(replace(recipe, teacher="current"), items)
    assert itself.measurements["loss_opd"] == pytest.approx(0, abs=1e-12)
    assert itself.measurements["divergence"] == pytest.approx(0, abs=1e-12)
    base, _, _, _ = step(recipe, items)
    assert base.measurements["loss_opd"] > 0.01
    hinted = items_of(tiny_model(), LENGTHS)
    assert step(replace(recipe, teacher="current"), hinted)[0].measurements["loss_opd"] > 0.01


def test_same_input_gives_the_same_bytes():
    items = items_of(tiny_model(), LENGTHS)
    recipe = replace(RECIPE, micro_batch_tokens=20, step_bound=0.01, kl_beta=0.1)
    _, _, first, first_state = step(recipe, items)
    _, _, second, second_state = step(recipe, items)
    assert bytes_of(first) == bytes_of(second)
    assert bytes_of(first_state) == bytes_of(second_state)


def test_seed_decides_a_fresh_adapter_and_nothing_else_does():
    def fresh(seed):
        torch.manual_seed(99)
        model = tiny_model()
        with adapted(model, tiny_shape(model), seed) as policy:
            return policy.tensors()

    assert bytes_of(fresh(1)) == bytes_of(fresh(1)) != bytes_of(fresh(2))
    assert all(not value.any() for name, value in fresh(1).items() if "lora_B" in name)


def test_the_base_is_left_as_it_was():
    model = tiny_model()
    names = list(model.state_dict())
    with adapted(model, tiny_shape(model), 1) as policy:
        disturb(policy)
    assert list(model.state_dict()) == names
    assert all(
        torch.equal(a, b) for a, b in zip(model.state_dict().values(), tiny_model().state_dict().values(), strict=True)
    )


def test_a_card_gets_back_what_a_step_took_whether_it_ended_or_failed(monkeypatch):
    given_back = []
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: given_back.append(True))
    model = tiny_model()
    with adapted(model, tiny_shape(model), 1):
        assert given_back == []
    assert given_back == [True]
    with pytest.raises(StepCancelledError), adapted(model, tiny_shape(model), 1):
        raise StepCancelledError
    assert given_back == [True, True]


def test_report_names_every_measurement_and_the_exact_divergences():
    items = items_of(tiny_model(), LENGTHS)
    outcome, before, _, _ = step(replace(RECIPE, kl_beta=0.1), items)
    assert set(outcome.measurements) >= {
        "loss", "loss_binary", "loss_opd", "loss_kl", "v_mean", "v_max", "rho_mean", "masked_share", "ess", "kl_base",
        "kl_step", "entropy", "logprob_difference", "gradient_norm", "tokens", "step_scale", "clipped_share",
    }  # fmt: skip
    assert outcome.measurements["tokens"] == 20
    assert outcome.measurements["rho_mean"] == pytest.approx(1.0)
    base = {name: torch.zeros_like(value) for name, value in before.items()}
    assert outcome.measurements["kl_base"] == pytest.approx(answer_kl(before, base, items), rel=1e-9)
    assert outcome.measurements["entropy_ratio"] != pytest.approx(1.0, abs=1e-3)
    as_base, *_ = step(replace(RECIPE, kl_beta=0.1), items, weights=base)
    assert as_base.measurements["entropy_ratio"] == pytest.approx(1.0)
    divergences = [sample.divergence for sample in outcome.samples]
    assert outcome.measurements["loss_opd"] == pytest.approx(sum(divergences) / (4 * 7.0))
    assert all(0 < sample.staleness < 3 for sample in outcome.samples)


@pytest.mark.parametrize("shift", [1.0, -2.0])
def test_engine_that_is_too_sure_or_unsure_measures_beyond_the_bounds_of_the_alerts(shift):
    items = items_of(tiny_model(), LENGTHS)
    off = [changed(item, logprobs=tuple(logprob + shift for logprob in item.sample.logprobs)) for item in items]
    honest, measured = (step(RECIPE, batch)[0].measurements for batch in (items, off))
    assert measured["logprob_bias"] == pytest.approx(honest["logprob_bias"] + shift)
    assert measured["v_mean"] == pytest.approx(honest["v_mean"] * math.exp(-shift))
    assert abs(measured["logprob_bias"]) > 0.1
    assert abs(measured["v_mean"] - 1) > 0.05
    assert measured["logprob_difference"] > max(0.02, 2 * honest["logprob_difference"])
    assert measured["masked_share"] > 0.2
    assert measured["entropy"] == pytest.approx(honest["entropy"])


def test_engine_that_errs_on_single_tokens_leaves_few_that_count():
    items = items_of(tiny_model(), LENGTHS)
    off = [
        changed(item, logprobs=(item.sample.logprobs[0] - 6.0, *item.sample.logprobs[1:])) if at == 0 else item
        for at, item in enumerate(items)
    ]
    honest, measured = (step(RECIPE, batch)[0].measurements["ess"] for batch in (items, off))
    assert measured < 0.3 < honest


def test_step_bound_is_measured_on_answers_of_every_length_drawn_by_the_seed():
    items = items_of(tiny_model(), ((5, 2), (5, 12)) * 8)
    recipe = replace(RECIPE, learning_rate=0.1)
    measured, start = set(), start_of(items)
    for seed in range(4):
        outcome, before, after, _ = step(recipe, items, weights=start, seed=seed)
        chosen = [items[i] for i in drawn(range(16), ANSWERS_MAX, seed)]
        assert len(chosen) == 8
        assert outcome.measurements["kl_step"] == pytest.approx(answer_kl(before, after, chosen), rel=1e-9)
        measured.add(outcome.measurements["kl_step"])
        again, *_ = step(recipe, items, weights=start, seed=seed)
        assert again.measurements["kl_step"] == outcome.measurements["kl_step"]
        # The shortest answers, which a pass sees first, would say too little.
        assert outcome.measurements["kl_step"] > 1.2 * answer_kl(before, after, items[::2])
    assert len(measured) == 4


def test_a_batch_that_the_clip_holds_after_its_first_step_has_moved_and_says_what_pulled():
    items = [changed(item, advantage=1.0) for item in items_of(tiny_model(), ((5, 1),))]
    recipe = replace(RECIPE, method="binary", learning_rate=0.05, clip_high=1e-9, optimizer_steps=3)
    outcome, before, after, _ = step(recipe, items)
    assert outcome.measurements["clipped_share"] == outcome.samples[0].gradient_share == 1
    assert outcome.measurements["gradient_norm"] > 0
    assert outcome.measurements["kl_step"] == pytest.approx(answer_kl(before, after, items), rel=1e-9) != 0


def test_a_loss_that_is_not_a_number_fails_the_step():
    items = items_of(tiny_model(), LENGTHS)
    model = tiny_model()
    with adapted(model, tiny_shape(model), 1) as policy:
        policy.set_tensors({name: torch.full_like(value, 1e200) for name, value in policy.tensors().items()})
        with pytest.raises(StepNotFiniteError):
            take_step(Teacher(policy), make_optimizer(policy, RECIPE, {}), items, RECIPE, 1, silent)


def test_cancelling_stops_at_the_next_micro_batch():
    items, seen = items_of(tiny_model(), LENGTHS), []

    def progress(phase, number, _count, _loss):
        seen.append((phase, number))
        if phase == "forward_backward" and number == 1:
            raise StepCancelledError

    with pytest.raises(StepCancelledError):
        step(replace(RECIPE, micro_batch_tokens=10), items, progress=progress)
    assert seen[-1] == ("forward_backward", 1)


def test_optimizer_state_of_another_adapter_is_refused():
    items = items_of(tiny_model(), LENGTHS)
    _, _, _, state = step(RECIPE, items)
    model = tiny_model()
    with adapted(model, tiny_shape(model), 1) as policy:
        assert state_mismatch(policy, state) == ""
        assert state_mismatch(policy, {}) == ""
        assert "are not those" in state_mismatch(policy, {name: v for name, v in state.items() if name != "step"})
        wrong = {name: value[..., :1] if name != "step" else value for name, value in state.items()}
        assert "wrong shape" in state_mismatch(policy, wrong)


def with_one_odd_token(items):
    """Its sampler found the first answer's first token far less likely than the policy does; all others agree."""
    first, *others = items
    logprobs = (first.sample.logprobs[0] - 6.0, *first.sample.logprobs[1:])
    return [changed(first, logprobs=logprobs), *others]


@pytest.mark.parametrize(
    ("bound", "guard"), [({"ess_min": 0.3}, "guard_ess"), ({"masked_share_max": 0.04}, "guard_masked_share")]
)
def test_a_batch_in_which_few_count_takes_exact_divergences_and_nothing_that_weighs_by_v(bound, guard):
    items = with_one_odd_token(items_of(tiny_model(), LENGTHS))
    guarded, _, after, _ = step(replace(RECIPE, **bound), items)
    assert guarded.measurements[guard] == 1
    # As if no answer had a verdict: only the exact divergence is left.
    silent_items = [changed(item, advantage=0.0) for item in items]
    unguarded, _, expected, _ = step(RECIPE, silent_items)
    assert guard not in unguarded.measurements
    assert bytes_of(after) == bytes_of(expected)
    assert guarded.measurements["loss_binary"] == 0


def test_guards_leave_alone_what_weighs_nothing_by_v_and_what_is_within_its_bounds():
    bounds = {"ess_min": 0.3, "masked_share_max": 0.2}
    exact = replace(RECIPE, method="opd")
    odd = with_one_odd_token(items_of(tiny_model(), LENGTHS))
    sound = items_of(tiny_model(), LENGTHS)
    for recipe, items in ((exact, odd), (RECIPE, sound)):
        guarded, _, after, _ = step(replace(recipe, **bounds), items)
        _, _, plain, _ = step(recipe, items)
        assert not [name for name in guarded.measurements if name.startswith("guard_")]
        assert bytes_of(after) == bytes_of(plain)


def test_a_batch_of_rewards_alone_that_the_guard_masks_moves_nothing():
    items = with_one_odd_token(items_of(tiny_model(), LENGTHS))
    outcome, before, after, _ = step(replace(RECIPE, method="binary", ess_min=0.3), items)
    assert (outcome.measurements["guard_ess"], outcome.measurements["gradient_norm"]) == (1, 0)
    assert bytes_of(before) == bytes_of(after)


def test_a_process_without_memory_for_its_optimiser_tells_the_others():
    heard: list[Exception] = []

    class Listening(Alone):
        def apart(self, work):
            try:
                return work()
            except Exception as error:
                heard.append(error)
                raise

    model = tiny_model()
    items = items_of(model, LENGTHS)
    with adapted(model, tiny_shape(model), 1) as policy:
        optimizer = make_optimizer(policy, RECIPE, {})
        optimizer.step = lambda: (_ for _ in ()).throw(MemoryError("no more"))  # type: ignore[method-assign]
        with pytest.raises(MemoryError):
            take_step(Teacher(policy, RECIPE.teacher), optimizer, items, RECIPE, 1, silent, Listening())
    assert [str(error) for error in heard] == ["no more"]
