"""One step on a service that holds the weights: what it is asked for, in order, and what is reported of it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch

from backtalk_worker.training.domain.batch import BatchItem, prepare_batch
from backtalk_worker.training.domain.observation import gradient_shares, sample_outcomes
from backtalk_worker.training.domain.sampled_step import TEMPERATURE, Known, SampledStep, moved_by, sampled_step
from backtalk_worker.training.domain.step import BASE_ANSWERS_MAX, StepOutcome
from backtalk_worker.training.domain.step_bound import ANSWERS_MAX, BoundedStep, drawn, shrink_to_fit
from backtalk_worker.training.errors import StepNotFiniteError
from backtalk_worker.training.inputs.decode import TrainOrder
from backtalk_worker.training.outputs.base_model import BaseFacts
from backtalk_worker.training.outputs.tinker_service import Run, Session, Texts


class RemoteStep:
    """Begins at the parent, and ends with `run` at the new weights."""

    def __init__(self, order: TrainOrder, session: Session, facts: BaseFacts, parent: str | None) -> None:
        """`parent` is the path of what it begins with; None = the base."""
        self._order = order
        self._session = session
        self._facts = facts
        self._parent = parent
        self.run = self._begun()

    def take(self) -> StepOutcome:
        """Moves by one batch. One in which nothing pulls moves nothing."""
        order = self._order
        facts, recipe = self._facts, order.recipe
        # What is scored there is a prompt to it, with room for one token more.
        prepared = prepare_batch(order.samples, recipe, facts.context_length - 1, facts.vocabulary_size)
        items = self._answered([_at_its_temperature(item) for item in prepared])
        trained = [index for index, item in enumerate(items) if item.trained]
        known = self._known(items, trained)
        step = sampled_step(items, known, recipe)
        norm, bounded = self._moved(items, known, step)
        measured = {**step.measurements, "kl_step": bounded.kl, "step_scale": bounded.scale}
        measured |= {"answers_told": 0.0, "answers_anew": 0.0, "optimizer_restored": float(self._parent is not None)}
        if norm is not None:
            measured["gradient_norm"] = norm
        shares = gradient_shares(items, {index: seen.pulled for index, seen in step.observed.items()})
        return StepOutcome(measured, sample_outcomes(items, dict(step.observed), shares))

    def _begun(self) -> Run:
        if self._parent is not None:
            return self._session.resumed(self._parent)
        return self._session.fresh(self._order.recipe.lora_rank, self._order.seed)

    def _answered(self, items: Sequence[BatchItem]) -> list[BatchItem]:
        """Each with an answer of the policy: where lessons were shown, one that it gives to the plain prompt now."""
        at = [index for index, item in enumerate(items) if item.trained and item.sample.shown]
        if not at:
            return list(items)
        prompts = [items[index].sample.prompt_ids for index in at]
        room, seed = self._order.recipe.max_answer_tokens, self._order.seed
        answers = self._session.answers_of(self.run, prompts, room, self._facts.end_ids, seed)
        answered = list(items)
        for index, answer in zip(at, answers, strict=True):
            sample = replace(items[index].sample, answer_ids=tuple(answer), advantage=0.0)
            answered[index] = replace(items[index], sample=sample)
            if not answer:
                answered[index] = replace(items[index], dropped="empty", trained=False)
        return answered

    def _known(self, items: Sequence[BatchItem], trained: Sequence[int]) -> dict[int, Known]:
        """What policy, teacher and base give the answers' tokens."""
        if not trained:
            return {}
        recipe = self._order.recipe
        texts = _texts(items, trained)
        old = _tensors(trained, self.run.logprobs(texts))
        taught = [index for index in trained if items[index].teacher_prompt]
        near = trained if recipe.kl_beta > 0 else drawn(trained, BASE_ANSWERS_MAX, self._order.seed)
        base = self._session.base()
        hinted = Texts([items[i].teacher_prompt for i in taught], [items[i].sample.answer_ids for i in taught])
        teacher = _tensors(taught, base.logprobs(hinted))
        plain = _tensors(near, base.logprobs(_texts(items, near)))
        return {i: Known(old[i], teacher.get(i), plain.get(i)) for i in trained}

    def _moved(
        self, items: Sequence[BatchItem], known: Mapping[int, Known], step: SampledStep
    ) -> tuple[float | None, BoundedStep]:
        """The gradient's norm, if it is known, and the step as the bound leaves it.

        AdamW's step is as long as its learning rate, so a shorter one is the same step from the same place with less.
        """
        recipe = self._order.recipe
        pulled = [index for index, pull in step.pulls.items() if bool(pull.any())]
        if any(not bool(torch.isfinite(step.pulls[index]).all()) for index in pulled):
            raise StepNotFiniteError("the gradient")
        if not pulled:
            return 0.0, BoundedStep(scale=0.0, kl=0.0)
        kept = sorted(index for index, seen in step.observed.items() if seen.kept)
        chosen = drawn(kept, ANSWERS_MAX, self._order.seed)
        texts, norm, taken = _texts(items, pulled), None, False

        def measure_at(scale: float) -> float:
            nonlocal norm, taken
            if taken:
                self.run.close()
                self.run = self._begun()
            taken = True
            old = [known[index].old.tolist() for index in pulled]
            self.run.backward(texts, old, [step.pulls[index].tolist() for index in pulled])
            norm = self.run.step(recipe, scale * recipe.learning_rate)
            new = _tensors(chosen, self.run.logprobs(_texts(items, chosen)))
            return moved_by([known[index].old for index in chosen], [new[index] for index in chosen])

        bounded = shrink_to_fit(measure_at, recipe.step_bound)
        if not math.isfinite(bounded.kl) or not math.isfinite(norm or 0.0):
            raise StepNotFiniteError("the divergence of the step")
        return norm, bounded


def _at_its_temperature(item: BatchItem) -> BatchItem:
    """Left out where the service cannot say how likely its answer was; one that is given here is given at its own."""
    if not item.trained or item.sample.shown or item.sample.temperature == TEMPERATURE:
        return item
    return replace(item, dropped="temperature", trained=False, teacher_prompt=())


def _texts(items: Sequence[BatchItem], indices: Sequence[int]) -> Texts:
    samples = [items[index].sample for index in indices]
    return Texts([sample.prompt_ids for sample in samples], [sample.answer_ids for sample in samples])


def _tensors(indices: Sequence[int], rows: Sequence[Sequence[float]]) -> dict[int, torch.Tensor]:
    """By index of the item, each [tokens]."""
    return {index: torch.tensor(row, dtype=torch.float64) for index, row in zip(indices, rows, strict=True)}
