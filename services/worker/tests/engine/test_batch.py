"""The batching loop against transformers' plain forward pass, on a tiny random model."""

import copy
import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM, PreTrainedModel

from backtalk_worker.engine.domain.plan import Budget
from backtalk_worker.engine.domain.request import Prompt, Sampling
from backtalk_worker.engine.events import EngineEvents
from backtalk_worker.engine.inputs.prompts import token_bytes
from backtalk_worker.engine.outputs.adapters import Adapter, load_adapter
from backtalk_worker.engine.outputs.batch import REUSE_TOKENS_MIN, Batch, BatchLimits, Ticket, Update
from backtalk_worker.engine.outputs.network import RaggedNetwork, RowInput, RowOutput
from backtalk_worker.model.load import LoadedModel
from tests.engine.conftest import write_adapter

LIMITS = BatchLimits(
    rows_max=8,
    length_max=512,
    kv_tokens_max=4096,
    prefix_tokens_max=1024,
    budget=Budget(beside_answers=7, alone=16),
    logprobs_mode="processed_logprobs",
)


class Bench:
    """A network with its batch, stepped by hand."""

    def __init__(self, model: LoadedModel, limits: BatchLimits = LIMITS) -> None:
        self.network = RaggedNetwork(model, "tiny")
        self.events = EngineEvents("tiny", limits.kv_tokens_max, logging.getLogger("test"))
        self.batch = Batch(self.network, token_bytes(model), limits, self.events)
        self.computed = 0
        """Ids that went through the network."""
        forward = self.network.forward

        def counted(rows: Sequence[RowInput]) -> list[RowOutput]:
            self.computed += sum(len(row.ids) for row in rows)
            return forward(rows)

        self.network.forward = counted  # type: ignore[method-assign]

    def adapter(self, folder: Path) -> Adapter:
        return load_adapter(folder.name, folder, self.network.layer_shapes, 64)

    def run(self, *tickets: Ticket) -> dict[Ticket, list[Update]]:
        for ticket in tickets:
            self.batch.add(ticket)
        return self.finish()

    def finish(self) -> dict[Ticket, list[Update]]:
        got: dict[Ticket, list[Update]] = {}
        while self.batch.running or self.batch.waiting:
            for ticket, update in self.batch.step():
                got.setdefault(ticket, []).append(update)
        return got

    def copied(self) -> float:
        return self.metric("vllm:prompt_tokens_cached_total")

    def metric(self, name: str) -> float:
        text = self.events.exposition().decode()
        return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith(name))


def ticket(length: int, adapter: Adapter | None = None, seed: int = 0, salt: str = "", **settings: object) -> Ticket:
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(3, 49000, (length,), generator=generator).tolist()
    values = {"max_tokens": 12, "temperature": 0.8, "seed": seed, "top_logprobs": 0, **settings}
    return Ticket(Prompt(tuple(ids), salt), Sampling(**values), adapter)  # type: ignore[arg-type]


def ids_and_logprobs(updates: list[Update]) -> tuple[list[int], list[float]]:
    tokens = [u.token for u in updates if u.token]
    return [t.token for t in tokens], [t.scores.chosen.logprob for t in tokens if t.scores]


@torch.no_grad()
def reference_logprobs(model: torch.nn.Module, prompt: list[int], answer: list[int], temperature: float) -> list[float]:
    logits = model(torch.tensor([prompt + answer])).logits[0, len(prompt) - 1 : -1] / temperature
    return logits.log_softmax(-1).gather(-1, torch.tensor(answer)[:, None])[:, 0].tolist()


def reference_with(folder: Path, tiny_folder: Path) -> torch.nn.Module:
    base = AutoModelForCausalLM.from_pretrained(tiny_folder, dtype=torch.float32).eval()
    return PeftModel.from_pretrained(base, folder).eval()


def largest_gap(a: list[float], b: list[float]) -> float:
    return max(abs(x - y) for x, y in zip(a, b, strict=True))


def test_rows_with_different_adapters_in_one_batch_agree_with_transformers(
    tiny: LoadedModel, tiny_reference: PreTrainedModel, tiny_folder: Path, adapters: list[Path]
):
    bench = Bench(tiny)
    first, second = (bench.adapter(folder) for folder in adapters)
    references = {None: tiny_reference, first: reference_with(adapters[0], tiny_folder)}
    references[second] = reference_with(adapters[1], tiny_folder)
    tickets = [
        ticket(5 + 9 * i, adapter, seed=i) for i, adapter in enumerate([first, None, second, first, None, second])
    ]
    got = bench.run(*tickets)
    for one in tickets:
        ids, logprobs = ids_and_logprobs(got[one])
        expected = reference_logprobs(references[one.adapter], list(one.prompt.ids), ids, 0.8)
        assert largest_gap(logprobs, expected) < 1e-4


def test_a_row_gets_the_same_answer_alone_and_beside_others(tiny: LoadedModel):
    alone = ids_and_logprobs(next(iter(Bench(tiny).run(ticket(30, seed=3)).values())))
    bench = Bench(tiny)
    late = ticket(30, seed=3)
    for i in range(5):
        bench.batch.add(ticket(11 * i + 1, seed=10 + i, max_tokens=5 + 3 * i))
    bench.batch.step()
    bench.batch.add(late)
    ids, logprobs = ids_and_logprobs(bench.finish()[late])
    assert ids == alone[0]
    assert largest_gap(logprobs, alone[1]) < 1e-4


def test_a_copied_beginning_changes_no_logprob_and_is_not_computed_again(
    tiny: LoadedModel, tiny_reference: PreTrainedModel
):
    bench = Bench(tiny)
    bench.run(ticket(100, seed=1))
    shared = ticket(100, seed=1).prompt.ids[:80]
    following = Ticket(Prompt((*shared, 7, 8, 9)), Sampling(max_tokens=6, seed=4, top_logprobs=0), None)
    before = bench.computed
    ids, logprobs = ids_and_logprobs(bench.run(following)[following])
    assert bench.copied() == 80
    assert bench.computed - before == 3 + len(ids) - 1
    assert largest_gap(logprobs, reference_logprobs(tiny_reference, list(following.prompt.ids), ids, 1.0)) < 1e-4


def test_a_conversation_that_goes_on_reuses_its_own_answer(tiny: LoadedModel):
    bench = Bench(tiny)
    first = ticket(40, seed=1, max_tokens=20)
    answer, _ = ids_and_logprobs(bench.run(first)[first])
    bench.run(Ticket(Prompt((*first.prompt.ids, *answer, 5, 6)), Sampling(max_tokens=1), None))
    assert bench.copied() == 40 + len(answer) - 1


def test_rows_that_start_together_compute_a_shared_beginning_once(tiny: LoadedModel):
    bench = Bench(tiny)
    bench.run(*[ticket(60, seed=1, max_tokens=2) for _ in range(4)])
    assert bench.copied() >= 3 * (59 - REUSE_TOKENS_MIN)


@pytest.mark.parametrize("other", ["salt", "adapter"])
def test_nothing_is_copied_across_salts_or_adapters(tiny: LoadedModel, adapters: list[Path], other: str):
    bench = Bench(tiny)
    bench.run(ticket(60, seed=1))
    adapter = bench.adapter(adapters[0]) if other == "adapter" else None
    bench.run(ticket(60, adapter, seed=1, salt="b" if other == "salt" else ""))
    assert bench.copied() == 0


def test_the_same_files_loaded_again_share_nothing_with_the_first_load(tiny: LoadedModel, adapters: list[Path]):
    bench = Bench(tiny)
    bench.run(ticket(60, bench.adapter(adapters[0]), seed=1))
    bench.run(ticket(60, bench.adapter(adapters[0]), seed=1))
    assert bench.copied() == 0


def test_an_unloaded_adapters_memory_is_freed(tiny: LoadedModel, adapters: list[Path]):
    bench = Bench(tiny)
    adapter = bench.adapter(adapters[0])
    bench.run(ticket(60, adapter, seed=1))
    assert bench.batch.kv_tokens > 0
    bench.batch.forget_adapter(adapter.serial)
    assert bench.batch.kv_tokens == 0


def test_what_a_row_computed_is_freed_at_its_end_where_its_adapter_was_unloaded_meanwhile(
    tiny: LoadedModel, adapters: list[Path]
):
    bench = Bench(tiny)
    unloaded, stays = (bench.adapter(folder) for folder in adapters)
    for adapter in (unloaded, stays):
        bench.batch.add(ticket(60, adapter, seed=1))
    bench.batch.step()
    bench.batch.forget_adapter(unloaded.serial)
    bench.finish()
    kept = bench.batch.kv_tokens
    assert kept > 0
    bench.batch.forget_adapter(stays.serial)
    assert bench.batch.kv_tokens == 0


def test_prompt_scores_agree_with_transformers_in_chunks(tiny: LoadedModel, tiny_reference: PreTrainedModel):
    bench = Bench(tiny)
    scored = ticket(50, seed=2, prompt_logprobs=0, max_tokens=1)
    scores = bench.run(scored, ticket(20, seed=9))[scored][0].prompt_scores
    ids = list(scored.prompt.ids)
    assert scores is not None
    assert scores[0] is None
    assert [s.chosen.token for s in scores if s] == ids[1:]
    expected = reference_logprobs(tiny_reference, ids[:1], ids[1:], 1.0)
    assert largest_gap([s.chosen.logprob for s in scores if s], expected) < 1e-4


def test_scores_from_a_start_on_reuse_the_beginning_and_are_the_same(tiny: LoadedModel):
    bench = Bench(tiny)
    whole = ticket(50, seed=2, prompt_logprobs=0, max_tokens=1)
    expected = bench.run(whole)[whole][0].prompt_scores
    tail = ticket(50, seed=2, prompt_logprobs=0, prompt_logprobs_start=40, max_tokens=1)
    scores = bench.run(tail)[tail][0].prompt_scores
    assert scores is not None and expected is not None
    assert bench.copied() == 39
    assert len(scores) == 50 and scores[:40] == [None] * 40
    assert (
        largest_gap([s.chosen.logprob for s in scores[40:] if s], [s.chosen.logprob for s in expected[40:] if s]) < 1e-4
    )


def test_scores_from_a_start_beyond_the_prompt_are_none_and_the_answer_comes(tiny: LoadedModel):
    bench = Bench(tiny)
    whole = ticket(50, seed=2, max_tokens=1)
    bench.run(whole)
    beyond = ticket(50, seed=2, prompt_logprobs=0, prompt_logprobs_start=100_000, max_tokens=1)
    updates = bench.run(beyond)[beyond]
    assert ids_and_logprobs(updates)[0] == ids_and_logprobs(bench.run(whole)[whole])[0]


def test_rows_sent_back_for_lack_of_memory_give_the_same_answers(tiny: LoadedModel):
    tickets = [ticket(20, seed=i, max_tokens=30) for i in range(3)]
    wide = {t: ids_and_logprobs(u)[0] for t, u in Bench(tiny).run(*tickets).items()}
    bench = Bench(tiny, BatchLimits(8, 512, 100, 0, Budget(7, 16), "processed_logprobs"))
    narrow = {t: ids_and_logprobs(u)[0] for t, u in bench.run(*tickets).items()}
    assert bench.metric("vllm:num_preemptions_total") > 0
    assert narrow == wide
    assert bench.metric("vllm:prompt_tokens_total") == sum(len(t.prompt.ids) for t in tickets)


def test_a_row_whose_numbers_are_not_finite_ends_alone_and_leaves_nothing_behind(
    tiny: LoadedModel, tiny_folder: Path, tmp_path: Path
):
    alone = ids_and_logprobs(next(iter(Bench(copy.deepcopy(tiny)).run(ticket(30, seed=3)).values())))
    bench = Bench(tiny)
    broken = ticket(30, bench.adapter(write_adapter(tiny_folder, tmp_path / "a", seed=3, size=1e30)), seed=1)
    beside = ticket(30, seed=3)
    got = bench.run(broken, beside)
    assert [update.error and update.error.code for update in got[broken]] == ["logits_not_finite"]
    assert ids_and_logprobs(got[beside])[0] == alone[0]
    held = bench.batch.kv_tokens
    bench.batch.forget_adapter(broken.serial)
    assert bench.batch.kv_tokens == held > 0


def test_a_prompt_of_which_one_score_is_no_number_ends_with_an_error(
    tiny: LoadedModel, monkeypatch: pytest.MonkeyPatch
):
    bench = Bench(tiny)
    forward = bench.network.forward

    def spoiled(rows: Sequence[RowInput]) -> list[RowOutput]:
        outputs = [replace(output, logits=output.logits.clone()) for output in forward(rows)]
        outputs[0].logits[0, 0] = torch.inf
        return outputs

    monkeypatch.setattr(bench.network, "forward", spoiled)
    scored = ticket(10, seed=1, prompt_logprobs=0, max_tokens=1)
    assert [update.error and update.error.code for update in bench.run(scored)[scored]] == ["logits_not_finite"]


def test_a_cancelled_row_leaves_before_the_next_step(tiny: LoadedModel):
    bench = Bench(tiny)
    gone, stays = ticket(5, seed=1, max_tokens=400), ticket(5, seed=2, max_tokens=3)
    bench.batch.add(gone)
    bench.batch.add(stays)
    bench.batch.step()
    bench.batch.cancel(gone)
    assert bench.batch.running == 1
    assert gone not in bench.finish()


def test_a_long_prompt_delays_others_by_one_bounded_chunk_a_step(tiny: LoadedModel):
    bench = Bench(tiny)
    answering = ticket(5, seed=1, max_tokens=20)
    bench.batch.add(answering)
    bench.batch.step()
    bench.batch.add(ticket(300, seed=2))
    for _ in range(10):
        assert [t for t, _ in bench.batch.step()] == [answering]
