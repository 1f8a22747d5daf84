"""One pass over the batch: forward, loss in chunks of positions, backward, gradients added up over micro-batches.

The first pass of a batch also records what π_old gives, since there π_θ = π_old. A repeated pass starts from nothing.
"""

# torch annotates backward in part.
# pyright: reportUnknownMemberType=false

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields

import torch
from torch import Tensor

from backtalk_worker.training.domain.batch import BatchItem
from backtalk_worker.training.domain.binned import Bins
from backtalk_worker.training.domain.correction import bounded_log_ratio, sequence_is_off_policy, staleness
from backtalk_worker.training.domain.divergence import entropy, reverse_kl
from backtalk_worker.training.domain.each_micro_batch import each_micro_batch
from backtalk_worker.training.domain.network import ChunkedNetwork, answers_in, sampled_logprobs
from backtalk_worker.training.domain.objective import Terms, Tokens, clipped_count, loss_terms
from backtalk_worker.training.domain.observation import Observation
from backtalk_worker.training.domain.recipe import Recipe
from backtalk_worker.training.domain.sample import Sample
from backtalk_worker.training.domain.teacher import Teacher
from backtalk_worker.training.errors import StepNotFiniteError

Tick = Callable[[int, int, float], None]
"""Called before each micro-batch with its number, their count and the loss so far; raises to stop the pass."""


@dataclass
class PassSums:
    """Terms of the whole batch, divided by the normaliser; each before its weight, `loss` after."""

    loss: float = 0.0
    binary: float = 0.0
    opd: float = 0.0
    kl: float = 0.0
    ratio: float = 0.0
    """Sum of ρ over tokens."""
    tokens: int = 0
    clipped: int = 0

    @classmethod
    def total(cls, parts: Sequence["PassSums"]) -> "PassSums":
        """Of the parts of one batch."""
        return cls(*(sum(getattr(part, one.name) for part in parts) for one in fields(cls)))

    def add(self, terms: Terms, loss: Tensor, normaliser: float) -> None:
        """Adds one chunk."""
        self.loss += float(loss.detach())
        self.binary += float(terms.binary.detach()) / normaliser
        self.opd += float(terms.opd.detach()) / normaliser
        self.kl += float(terms.kl.detach()) / normaliser


@dataclass
class GradientPass:
    """Passes over one batch; states of teacher and base are by index of the item, as the items are."""

    who: Teacher
    items: Mapping[int, BatchItem]
    teacher: Mapping[int, Tensor]
    base: Mapping[int, Tensor]
    recipe: Recipe
    normaliser: float
    observed: dict[int, Observation] = field(default_factory=dict[int, Observation])
    """Filled by the first pass, read by the others."""
    takes_sampled_terms: bool = True
    """False leaves out every term that weighs by v, of all answers."""

    @property
    def network(self) -> ChunkedNetwork:
        return self.who.policy.network

    def run(self, token_budget: int, first: bool, tick: Tick) -> PassSums:
        """Leaves the gradient of the batch's loss in the parameters."""
        parameters = list(self.who.policy.parameters.values())
        for parameter in parameters:
            parameter.grad = None
        total = PassSums()
        indices = list(self.items)
        lengths = [self.items[i].sample.length for i in indices]

        def told(number: int, count: int) -> None:
            tick(number, count, total.loss)

        def work(group: Sequence[int]) -> tuple[PassSums, Sequence[Tensor | None]]:
            return self._micro_batch([indices[i] for i in group], first, parameters)

        for sums, gradients in each_micro_batch(self.network, lengths, token_budget, told, work, trains=True):
            total = PassSums.total([total, sums])
            for parameter, gradient in zip(parameters, gradients, strict=False):
                if gradient is not None:
                    parameter.grad = gradient if parameter.grad is None else parameter.grad.add_(gradient)
        return total

    def _micro_batch(
        self, group: Sequence[int], first: bool, parameters: Sequence[Tensor]
    ) -> tuple[PassSums, Sequence[Tensor | None]]:
        """Sums of a micro-batch and its gradient, parameter by parameter; none where nothing pulls."""
        sums = PassSums()
        samples = [self.items[i].sample for i in group]
        states = self.network.answer_states([s.prompt_ids for s in samples], [s.answer_ids for s in samples])
        if first:
            self._observe(group, states.detach())
        tokens = self._tokens(group)
        # The head's gradient is taken chunk by chunk against a leaf, and sent through the decoder once.
        leaf = states.detach().requires_grad_()  # [tokens, hidden]
        teacher = self._gathered(self.teacher, group, leaf, self.who.speaking)
        base = self._gathered(self.base, group, leaf, self.network)
        # In the first pass the policy is π_old, of which only bins look at more than the sampled tokens.
        is_old = first or self.recipe.opd_form != "topk"
        old = leaf.detach() if is_old else torch.cat([self.observed[i].states for i in group])
        figures: list[Tensor] = []
        for part in self.network.chunks(len(tokens.ids)):
            self._chunk(tokens[part], leaf[part], teacher[part], base[part], old[part], figures, sums, first)
        self._weigh(group, torch.zeros_like(leaf) if leaf.grad is None else leaf.grad)
        if first:
            self._record(group, torch.cat(figures))
        if leaf.grad is None and self.network.layout.sharing.size == 1:
            return sums, ()
        # Where the base is sharded, others wait for their part of the layers.
        pull = torch.zeros_like(states) if leaf.grad is None else leaf.grad
        return sums, torch.autograd.grad(states, parameters, pull, allow_unused=True)

    def _chunk(
        self,
        tokens: Tokens,
        states: Tensor,
        teacher_states: Tensor,
        base_states: Tensor,
        old_states: Tensor,
        figures: list[Tensor],
        sums: PassSums,
        first: bool,
    ) -> None:
        """Loss and gradient of some positions; states are [tokens, hidden], the teacher's of its own size."""
        student = self.network.log_probabilities(states)  # [tokens, vocabulary]
        with torch.no_grad():
            of = self.network.log_probabilities
            needs_base = bool(self.base) and (first or self.recipe.kl_beta > 0)
            teacher = self.who.speaking.log_probabilities(teacher_states) if tokens.taught.any() else None
            base = of(base_states) if needs_base else None
            is_binned = self.recipe.opd_form == "topk" and teacher is not None
            bins = Bins(of(old_states), self.network.ends, self.recipe.top_k) if is_binned else None
        terms = loss_terms(tokens, student, teacher, base, self.recipe, bins)
        loss = terms.weighted(self.recipe) / self.normaliser
        if not torch.isfinite(loss):
            raise StepNotFiniteError("the loss")
        sums.add(terms, loss, self.normaliser)
        with torch.no_grad():
            fixed = student.detach()
            log_policy = sampled_logprobs(fixed, tokens.ids, tokens.temperature)
            sums.ratio += float(bounded_log_ratio(log_policy, tokens.log_old).exp().sum())
            sums.tokens += len(tokens.ids)
            sums.clipped += clipped_count(tokens, log_policy, teacher, self.recipe)
            if first:
                unknown = torch.zeros_like(log_policy)
                divergence = unknown if teacher is None else reverse_kl(fixed, teacher)
                kl_base = unknown if base is None else reverse_kl(fixed, base)
                entropy_base = unknown if base is None else entropy(base)
                figures.append(torch.stack([entropy(fixed), divergence, kl_base, entropy_base], dim=1))
        if loss.requires_grad:
            loss.backward()

    def _observe(self, group: Sequence[int], states: Tensor) -> None:
        """log π_old and v of each answer; states are [tokens, hidden]."""
        parts = answers_in(states, [len(self.items[i].sample.answer_ids) for i in group])
        for index, part in zip(group, parts, strict=True):
            sample = self.items[index].sample
            ids = torch.tensor(sample.answer_ids, device=part.device)
            log_old = self.network.token_logprobs(part, ids, torch.full_like(ids, 1).double() * sample.temperature)
            log_v = bounded_log_ratio(log_old, _log_sampler(sample, log_old))
            self.observed[index] = Observation(
                part.clone(),
                log_old,
                log_v,
                kept=not sequence_is_off_policy(log_v),
                fresh=not self.recipe.staleness_max or staleness(log_v) <= self.recipe.staleness_max,
            )

    def _weigh(self, group: Sequence[int], gradient: Tensor) -> None:
        """How hard each answer pulls; the gradient is [tokens, hidden]."""
        parts = answers_in(gradient, [len(self.items[i].sample.answer_ids) for i in group])
        for index, part in zip(group, parts, strict=True):
            self.observed[index].gradient = float(part.double().square().sum())

    def _record(self, group: Sequence[int], figures: Tensor) -> None:
        """Sums over each answer of entropy, divergence and KL to the base; figures are [tokens, 4]."""
        parts = answers_in(figures, [len(self.items[i].sample.answer_ids) for i in group])
        for index, part in zip(group, parts, strict=True):
            seen = self.observed[index]
            seen.entropy = float(part[:, 0].sum())
            seen.divergence = float(part[:, 1].sum()) if index in self.teacher else None
            seen.kl_base = float(part[:, 2].sum()) if index in self.base else None
            seen.entropy_base = float(part[:, 3].sum()) if index in self.base else None

    def _tokens(self, group: Sequence[int]) -> Tokens:
        """Constants of all answer tokens of the group, answer after answer."""
        samples = [self.items[i].sample for i in group]
        seen = [self.observed[i] for i in group]
        log_old = torch.cat([one.log_old for one in seen])
        counts = torch.tensor([len(s.answer_ids) for s in samples], device=log_old.device)

        def spread(values: list[float] | list[bool], dtype: torch.dtype) -> Tensor:
            return torch.tensor(values, dtype=dtype, device=log_old.device).repeat_interleave(counts)

        return Tokens(
            ids=torch.tensor([i for s in samples for i in s.answer_ids], device=log_old.device),
            temperature=spread([s.temperature for s in samples], torch.float64),
            log_old=log_old,
            log_sampler=torch.cat([_log_sampler(s, one.log_old) for s, one in zip(samples, seen, strict=True)]),
            advantage=spread([s.advantage for s in samples], log_old.dtype),
            cut=spread([s.cut for s in samples], torch.bool),
            taught=spread([i in self.teacher for i in group], torch.bool),
            distilled=torch.cat([self._distilled(i) for i in group]).to(log_old.device),
            kept=spread([one.kept for one in seen], torch.bool),
            told=spread([s.told for s in samples], torch.bool),
            fresh=spread([one.fresh and self.takes_sampled_terms for one in seen], torch.bool),
        )

    def _distilled(self, index: int) -> Tensor:
        """Of the tokens of one answer, [tokens]."""
        count = len(self.items[index].sample.answer_ids)
        first = math.ceil(self.recipe.distill_share * count) if index in self.teacher else 0
        return torch.arange(count) < first

    def _gathered(
        self, states: Mapping[int, Tensor], group: Sequence[int], like: Tensor, network: ChunkedNetwork
    ) -> Tensor:
        """A network's states of the group's tokens; unused zeros where there are none. [tokens, hidden]."""
        rows = [
            states[i] if i in states else like.new_zeros(len(self.items[i].sample.answer_ids), network.hidden_size)
            for i in group
        ]
        return torch.cat(rows).detach()


def _log_sampler(sample: Sample, log_old: Tensor) -> Tensor:
    """Of answers that no engine sampled, what π_old gives: v is 1. [tokens]"""
    return log_old if sample.is_ours else torch.tensor(sample.logprobs).to(log_old)
