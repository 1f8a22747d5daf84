"""The gradient of a whole batch through a real network, against the objective written down once more: sample by sample,
without padding, chunks or micro-batches."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from tiny_policy import RECIPE, changed, disturb, items_of, relative_error, silent, tiny_model, tiny_shape
from written_out import binned, logprobs, written_out

from backtalk_worker.training.domain import network as network_module
from backtalk_worker.training.domain.adapter import adapted
from backtalk_worker.training.domain.gradient_pass import GradientPass
from backtalk_worker.training.domain.network import Layout
from backtalk_worker.training.domain.step import states_after
from backtalk_worker.training.domain.teacher import Teacher
from backtalk_worker.training.domain.token_budget import TokenBudget, micro_batches
from backtalk_worker.training.errors import OutOfMemoryError

KEPT = network_module.KEPT_BYTES_MAX
LENGTHS = ((5, 4), (9, 2), (3, 8), (6, 6), (4, 1))
FORMS = [
    replace(RECIPE, method="binary"),
    replace(RECIPE, method="opd", opd_form="full", divergence="reverse_kl"),
    replace(RECIPE, method="opd", opd_form="full", divergence="forward_kl"),
    replace(RECIPE, method="opd", opd_form="full", divergence="jeffreys"),
    replace(RECIPE, method="opd", opd_form="full", divergence="jsd"),
    replace(RECIPE, method="opd", opd_form="sampled", opd_advantage_clip=0.5),
    replace(RECIPE, method="opd", opd_form="topk", opd_advantage_clip=0.5),
    replace(RECIPE, method="opd", opd_form="topk", top_k=13),
    replace(RECIPE, method="opd", opd_form="hybrid", divergence="reverse_kl"),
    replace(RECIPE, method="opd", opd_form="full", divergence="jeffreys", teacher="current"),
    replace(RECIPE, method="combined", opd_form="hybrid", divergence="jsd", kl_beta=0.2, kl_form="sampled"),
    replace(RECIPE, method="combined", opd_form="hybrid", kl_beta=0.2, kl_form="full"),
    replace(RECIPE, method="combined", kl_beta=0.2, kl_form="full"),
    replace(RECIPE, method="combined", kl_beta=0.2, kl_form="sampled"),
    replace(RECIPE, method="opd", opd_form="sampled", distill_share=0.4),
    replace(RECIPE, method="opd", opd_form="topk", distill_share=0.4),
    replace(RECIPE, method="combined", opd_form="hybrid", distill_share=0.4, kl_beta=0.2, kl_form="full"),
]


def name_of(recipe):
    return "-".join(
        [
            recipe.method,
            recipe.opd_form,
            recipe.divergence,
            recipe.teacher,
            f"{recipe.kl_form}{recipe.kl_beta}",
            f"{recipe.distill_share}",
        ]
    )


def gradients(policy):
    return torch.cat([(p * 0 if p.grad is None else p.grad).detach().flatten() for p in policy.parameters.values()])


def run(policy, items, recipe, tokens=10_000, passes=None, who=None):
    by_index, budget = dict(enumerate(items)), TokenBudget(tokens)
    hinted = {i: x.teacher_prompt for i, x in by_index.items() if x.teacher_prompt}
    who = who or Teacher(policy, recipe.teacher)
    teacher = states_after(who, by_index, hinted, budget, silent)
    plain = {i: x.sample.prompt_ids for i, x in by_index.items()}
    base = states_after(Teacher(policy), by_index, plain, budget, silent)
    passes = passes or GradientPass(who, by_index, teacher, base, recipe, len(items) * recipe.mean_answer_length)
    sums = passes.run(tokens, True, lambda *_: None)
    return sums, gradients(policy), passes


@pytest.fixture
def policy():
    model = tiny_model()
    with adapted(model, tiny_shape(model), seed=1) as one:
        disturb(one)
        yield one


@pytest.fixture
def items():
    found = items_of(tiny_model(), LENGTHS)
    # One cut answer that was praised, one token the mask leaves out, one token whose weight is bounded.
    found[1] = changed(found[1], cut=True)
    first = list(found[0].sample.logprobs)
    found[0] = changed(found[0], logprobs=(first[0] - 2.0, *first[1:]))
    third = list(found[2].sample.logprobs)
    found[2] = changed(found[2], logprobs=(*third[:-1], third[-1] - 1.0))
    return found


def with_told(items, recipe):
    """Two of the answers are the teacher's own, where the form knows such."""
    if recipe.opd_form != "hybrid":
        return items
    return [changed(x, told=True) if at > 2 else x for at, x in enumerate(items)]


@pytest.mark.parametrize("recipe", FORMS, ids=name_of)
def test_value_and_gradient_equal_the_objective_written_out(policy, items, recipe):
    items = with_told(items, recipe)
    sums, found, _ = run(policy, items, recipe)
    expected_loss = written_out(policy, items, recipe)
    expected = torch.cat([g.flatten() for g in torch.autograd.grad(expected_loss, list(policy.parameters.values()))])
    assert float(expected.abs().max()) > 1e-4
    assert abs(sums.loss - float(expected_loss.detach())) < 1e-5
    # Relative to the largest component, which is far below 1 here and so stricter than the absolute bound.
    assert float((found - expected).abs().max() / expected.abs().max()) < 1e-5


@pytest.mark.parametrize("tokens", [10_000, 16])
@pytest.mark.parametrize("recipe", FORMS, ids=name_of)
def test_an_answer_pulls_by_the_gradient_at_its_last_hidden_states(policy, items, recipe, tokens):
    items = with_told(items, recipe)
    _, _, passes = run(policy, items, recipe, tokens)
    found = torch.tensor([passes.observed[i].gradient for i in range(len(items))], dtype=torch.float64)
    states = []
    head = policy.network.model.get_output_embeddings()
    hook = head.register_forward_pre_hook(lambda _, given: states.append(given[0]) if given[0].requires_grad else None)
    loss = written_out(policy, items, recipe)
    hook.remove()
    # The policy is read twice for each answer: at its turn's temperature and at 1.
    pulls = torch.autograd.grad(loss, states, allow_unused=True, materialize_grads=True)
    expected = torch.stack([(one + two).square().sum() for one, two in zip(pulls[::2], pulls[1::2], strict=True)])
    assert float(expected.max()) > 0
    assert float((found - expected).abs().max() / expected.max()) < 1e-5


def test_gradient_of_exact_divergences_equals_finite_differences(policy, items):
    recipe = replace(RECIPE, kl_beta=0.2)
    recipe = replace(recipe, method="opd")
    _, found, _ = run(policy, items, recipe)
    start = policy.tensors()
    h, offset = 1e-5, 0
    for number, (name, value) in enumerate(start.items()):
        if number % 5:
            offset += value.numel()
            continue
        place = int(value.abs().argmax())
        losses = []
        for sign in (1, -1):
            moved = value.clone()
            moved.view(-1)[place] += sign * h
            policy.set_tensors({**start, name: moved})
            losses.append(float(written_out(policy, items, recipe).detach()))
        policy.set_tensors(start)
        assert found[offset + place].item() == pytest.approx((losses[0] - losses[1]) / (2 * h), abs=1e-7, rel=1e-5)
        offset += value.numel()


def test_bins_of_a_repeated_pass_are_weighed_by_the_policy_before_it(policy, items):
    recipe = replace(RECIPE, method="opd", opd_form="topk", clip_low=0.999, clip_high=1e9, dual_clip=1e10)
    answers = [(item, torch.tensor(item.sample.answer_ids)) for item in items]

    def probabilities(prompt, ids):
        return logprobs(policy.network.model, prompt, ids.tolist(), 1.0).exp()

    with torch.no_grad():
        before = [probabilities(item.sample.prompt_ids, ids) for item, ids in answers]
        _, _, passes = run(policy, items, recipe)
        disturb(policy, seed=8)
        sums = passes.run(10_000, False, lambda *_: None)
        total = 0.0
        for (item, ids), old in zip(answers, before, strict=True):
            p = probabilities(item.sample.prompt_ids, ids)
            with policy.network.without_adapter():
                t = probabilities(item.teacher_prompt, ids)
            total += sum(float(binned(p[at], t[at], int(ids[at]), recipe, old[at])) for at in range(len(ids)))
    assert sums.loss == pytest.approx(total / (len(items) * recipe.mean_answer_length), abs=1e-7)


@pytest.mark.parametrize("recipe", FORMS, ids=name_of)
def test_any_split_into_micro_batches_gives_the_same_gradient(policy, items, recipe):
    items = with_told(items, recipe)
    _, whole, _ = run(policy, items, recipe)
    for tokens in (1, 12, 25):
        _, split, _ = run(policy, items, recipe, tokens)
        assert float((split - whole).abs().max()) < 1e-9


@pytest.fixture
def packing():
    """The same policy as `policy`, whose samples lie end to end."""
    model = tiny_model()
    with adapted(model, tiny_shape(model), 1, Layout(packs=True)) as one:
        disturb(one)
        yield one


@pytest.mark.parametrize("recipe", FORMS, ids=name_of)
def test_packed_samples_give_the_gradient_and_the_figures_of_padded_ones(policy, packing, items, recipe):
    sums, padded, passes = run(policy, items, recipe)
    for tokens in (10_000, 30):
        packed_sums, packed, packed_passes = run(packing, items, recipe, tokens)
        assert float((packed - padded).abs().max()) < 1e-9
        assert packed_sums.loss == pytest.approx(sums.loss, abs=1e-12)
        for index, seen in passes.observed.items():
            found = packed_passes.observed[index]
            assert found.entropy == pytest.approx(seen.entropy, abs=1e-9)
            assert torch.allclose(found.log_old, seen.log_old, atol=1e-9)


def test_packed_samples_give_the_gradient_of_padded_ones_in_float32(items):
    found = []
    for packs in (False, True):
        model = tiny_model().float()
        with adapted(model, tiny_shape(model), 1, Layout(packs=packs)) as one:
            disturb(one)
            found.append(run(one, items, replace(RECIPE, kl_beta=0.2))[1])
    assert relative_error(found[1], found[0]) < 1e-6


def test_packed_samples_are_one_sequence_without_padding_and_one_alone_has_no_mask(packing, items, monkeypatch):
    seen = []
    forward = packing.network.decoder.forward

    def noted(**given):
        seen.append((tuple(given["input_ids"].shape), "position_ids" in given))
        return forward(**given)

    monkeypatch.setattr(packing.network.decoder, "forward", noted)
    samples = [item.sample for item in items]
    packing.network.answer_states([s.prompt_ids for s in samples], [s.answer_ids for s in samples])
    packing.network.answer_states([samples[0].prompt_ids], [samples[0].answer_ids])
    assert seen == [((1, sum(s.length for s in samples)), True), ((1, samples[0].length), False)]


def test_a_micro_batch_of_packed_samples_is_as_long_as_their_sum():
    assert micro_batches([10, 2, 3, 9, 30], 15, packed=True) == [[1, 2, 3], [0], [4]]
    assert micro_batches([10, 2, 3, 9, 30], 15) == [[1, 2], [3], [0], [4]]


def test_logits_in_small_chunks_give_the_same_gradient_and_figures(policy, items, monkeypatch):
    recipe = replace(RECIPE, kl_beta=0.2)
    sums, whole, passes = run(policy, items, recipe)
    monkeypatch.setattr(network_module, "LOGIT_CHUNK_ELEMENTS", 3 * 13)
    monkeypatch.setattr(network_module, "LOGIT_CHUNK_ELEMENTS_CARD", 3 * 13)
    chunked_sums, chunked, chunked_passes = run(policy, items, recipe)
    assert float((chunked - whole).abs().max()) < 1e-9
    assert chunked_sums.loss == pytest.approx(sums.loss, abs=1e-12)
    for index, seen in passes.observed.items():
        assert chunked_passes.observed[index].divergence == pytest.approx(seen.divergence, abs=1e-9)
        assert chunked_passes.observed[index].entropy == pytest.approx(seen.entropy, abs=1e-9)


def kept_for_backward(policy, tokens):
    """Bytes that a forward pass over so many tokens keeps for its backward pass, weights aside."""
    weights = {one.untyped_storage().data_ptr() for one in policy.network.model.parameters()}
    kept: dict[int, int] = {}

    def note(value):
        storage = value.untyped_storage()
        if storage.data_ptr() not in weights:
            kept[storage.data_ptr()] = storage.nbytes()
        return value

    with torch.autograd.graph.saved_tensors_hooks(note, lambda value: value):
        states = policy.network.answer_states([[1] * (tokens - 4)], [[2] * 4])
    return sum(kept.values()), states


@pytest.mark.parametrize(("free", "most"), [(0, KEPT), (4 * KEPT, KEPT), (40 * KEPT, 10 * KEPT)])
def test_a_card_keeps_a_quarter_of_what_is_free_where_that_is_more_than_elsewhere(free, most):
    # Of what torch holds already it uses 3 of 5.
    library = SimpleNamespace(
        mem_get_info=lambda _: (free - min(free, 2), 10**12),
        memory_reserved=lambda _: 5 if free else 0,
        memory_allocated=lambda _: 3 if free else 0,
    )
    assert network_module.kept_bytes_max(torch.device("cuda"), library) == most
    assert network_module.kept_bytes_max(torch.device("cpu"), library) == KEPT


def test_layers_that_are_computed_again_give_the_same_gradient_and_keep_little(policy, items, monkeypatch):
    recipe = replace(RECIPE, kl_beta=0.2)
    _, whole, _ = run(policy, items, recipe)
    large, _states = kept_for_backward(policy, 60)
    monkeypatch.setattr(network_module, "KEPT_BYTES_MAX", 8 * policy.network.kept_bytes)
    monkeypatch.setattr(network_module, "KEPT_SHARE_CARD", 0)
    _, again, _ = run(policy, items, recipe)
    small, _states = kept_for_backward(policy, 60)
    assert torch.equal(again, whole)
    assert small < large / 4
    assert not any(module.training for module in policy.network.decoder.modules())


def test_a_token_weighs_the_same_in_a_short_and_in_a_long_answer(policy):
    """The normaliser is N times a constant, so a batch of two is the mean of two batches of one."""
    items = items_of(tiny_model(), ((5, 2), (5, 9)))
    _, both, _ = run(policy, items, RECIPE)
    _, short, _ = run(policy, items[:1], RECIPE)
    _, long, _ = run(policy, items[1:], RECIPE)
    assert relative_error(both, (short + long) / 2) < 1e-9


def test_the_mean_over_all_tokens_is_a_choice_of_the_constant_length(policy):
    """The seeds divide by the number of tokens; a length of tokens/N gives exactly that."""
    items = items_of(tiny_model(), ((5, 2), (5, 9)))
    sums, _, _ = run(policy, items, replace(RECIPE, method="binary", mean_answer_length=11 / 2))
    rewards = []
    for item in items:
        own = logprobs(policy.network.model, item.sample.prompt_ids, item.sample.answer_ids, item.sample.temperature)
        v = (own[range(len(item.sample.answer_ids)), item.sample.answer_ids] - torch.tensor(item.sample.logprobs)).exp()
        rewards += (v.clamp(max=2) * ((v >= 0.5) & (v <= 5)) * item.sample.advantage).tolist()
    assert sums.binary == pytest.approx(-sum(rewards) / 11, abs=1e-6)


def sampled_at(policy, item, temperature):
    """The same answer as if the policy itself had sampled it at this temperature."""
    s = item.sample
    with torch.no_grad():
        own = logprobs(policy.network.model, s.prompt_ids, s.answer_ids, temperature)
    return changed(item, temperature=temperature, logprobs=tuple(own[range(len(s.answer_ids)), s.answer_ids].tolist()))


@pytest.mark.parametrize("name", ["reverse_kl", "forward_kl", "jeffreys", "jsd"])
def test_whole_distributions_pull_alike_whatever_temperature_sampled_the_answer(policy, items, name):
    recipe = replace(RECIPE, method="opd", divergence=name, kl_beta=0.2, kl_form="full")
    found = {}
    for temperature in (0.1, 0.8, 1.0):
        _, pull, passes = run(policy, [sampled_at(policy, item, temperature) for item in items], recipe)
        found[temperature] = (pull, [(x.divergence, x.kl_base, x.entropy) for x in passes.observed.values()])
    for pull, figures in found.values():
        assert relative_error(pull, found[1.0][0]) < 1e-9
        assert [x for row in figures for x in row] == pytest.approx([x for row in found[1.0][1] for x in row])


def test_low_temperatures_do_not_own_a_batch_of_mixed_ones(policy, items):
    recipe = replace(RECIPE, method="opd")
    cold, warm = sampled_at(policy, items[0], 0.1), sampled_at(policy, items[2], 0.8)
    _, both, _ = run(policy, [cold, warm], recipe)
    _, plain, _ = run(policy, [sampled_at(policy, items[0], 1.0), sampled_at(policy, items[2], 1.0)], recipe)
    assert relative_error(both, plain) < 1e-9


def test_a_verdict_pulls_at_the_temperature_of_its_turn(policy, items):
    recipe = replace(RECIPE, method="binary")
    item = changed(items[2], advantage=-1.0)
    _, warm, _ = run(policy, [sampled_at(policy, item, 1.0)], recipe)
    _, cold, _ = run(policy, [sampled_at(policy, item, 0.5)], recipe)
    assert relative_error(cold, warm) > 1e-3


def test_without_hints_distillation_is_exactly_nothing(policy, items):
    plain = [replace(item, teacher_prompt=()) for item in items]
    sums, found, _ = run(policy, plain, replace(RECIPE, method="opd"))
    assert sums.loss == 0 and sums.opd == 0
    assert not found.any()


def test_without_a_verdict_the_binary_term_is_exactly_nothing(policy, items):
    sums, found, _ = run(policy, [changed(item, advantage=0.0) for item in items], replace(RECIPE, method="binary"))
    assert sums.binary == 0
    assert not found.any()


def test_weight_of_a_sample_does_not_change_when_another_is_dropped(policy, items):
    """A sequence with a hopeless token gives nothing, and still counts in N."""
    # Nearly without temperature, the policy finds a random token all but impossible; the sampler was certain of it.
    hopeless = changed(items[2], temperature=0.02, logprobs=(0.0,) * len(items[2].sample.answer_ids))
    recipe = replace(RECIPE, kl_beta=0.1)
    _, found, passes = run(policy, [*items[:2], hopeless, *items[3:]], recipe)
    assert [seen.kept for seen in passes.observed.values()].count(False) == 1
    _, rest, _ = run(policy, [*items[:2], *items[3:]], recipe)
    assert relative_error(found * 5, rest * 4) < 1e-9


def test_lack_of_memory_halves_the_micro_batch_and_counts_nothing_twice(policy, items):
    _, whole, passes = run(policy, items, RECIPE)
    budget, tried = TokenBudget(256), []

    def work(tokens):
        tried.append(tokens)
        passes.run(tokens, True, lambda *_: None)
        if tokens > 64:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return gradients(policy)

    assert float((budget.spend(work) - whole).abs().max()) < 1e-9
    assert tried == [256, 128, 64]
    with pytest.raises(OutOfMemoryError):
        TokenBudget(64).spend(lambda _tokens: (_ for _ in ()).throw(MemoryError()))
