"""The objective of a batch written down once more: sample by sample, without padding, chunks or micro-batches."""

from contextlib import nullcontext

import torch
from tiny_policy import logits_of


def logprobs(model, prompt, answer, temperature):
    """[time, vocabulary] of one sample, from the model's own logits."""
    logits = logits_of(model, [*prompt, *answer])[len(prompt) - 1 : -1]
    return torch.log(torch.softmax(logits / temperature, dim=-1))


END = 2
"""The tiny model's."""


def binned(p, t, sampled, recipe, old=None):
    """One place of the form `topk`, bin by bin, in probabilities; π_old is the policy where it is not given."""
    old = p.detach() if old is None else old
    likeliest = {*old.topk(recipe.top_k).indices.tolist(), *t.topk(recipe.top_k).indices.tolist()}
    alone = sorted({*likeliest, sampled, END})
    rest = [v for v in range(len(p)) if v not in alone]
    bound = recipe.opd_advantage_clip or float("inf")
    total = torch.zeros((), dtype=p.dtype)
    for own in [[v] for v in alone] + ([rest] if rest else []):
        gap = (t[own].sum() / old[own].sum()).log().clamp(-bound, bound)
        total = total - old[own].sum() * (p[own].sum() / old[own].sum()) * gap
    return total


def written_out(policy, items, recipe, teaching=None):
    """The objective of the batch, one sample after the other; at the first optimiser step π_old is the policy.

    `teaching` is a model that is neither the base nor the policy. Scalar terms are at the turn's temperature,
    divergences over the vocabulary at 1.
    """
    model, total = policy.network.model, torch.zeros((), dtype=torch.float64)
    for item in items:
        s = item.sample
        ids = torch.tensor(s.answer_ids)
        log_p = logprobs(model, s.prompt_ids, s.answer_ids, s.temperature)
        p = logprobs(model, s.prompt_ids, s.answer_ids, 1.0).exp()
        with torch.no_grad(), policy.network.without_adapter() if recipe.teacher == "base" else nullcontext():
            log_t = logprobs(teaching or model, item.teacher_prompt, s.answer_ids, s.temperature)
            t = logprobs(teaching or model, item.teacher_prompt, s.answer_ids, 1.0).exp()
        with torch.no_grad(), policy.network.without_adapter():
            log_b = logprobs(model, s.prompt_ids, s.answer_ids, s.temperature)
            b = logprobs(model, s.prompt_ids, s.answer_ids, 1.0).exp()
        own = log_p[range(len(ids)), ids]
        old = own.detach()
        v = (old - torch.tensor(s.logprobs, dtype=torch.float64)).exp()
        if (v < 1e-4).any() and not s.told:
            continue
        w, mask = v.clamp(max=2.0), ((v >= 0.5) & (v <= 5.0)).double()
        ratio = (own - old).exp()
        binary = -(mask * w * ratio * (0.0 if s.cut and s.advantage > 0 else s.advantage)).sum()
        first = -int(-recipe.distill_share * len(ids) // 1)
        if s.told:
            pull = (t[:first] * (t[:first] / p[:first]).log()).sum()
            total = total + {"opd": 1, "combined": recipe.weight_opd}[recipe.method] * pull
            continue
        whole, p, t = p, p[:first], t[:first]
        if recipe.opd_form in ("full", "hybrid"):
            m = recipe.jsd_beta * t + (1 - recipe.jsd_beta) * p
            opd = {
                "reverse_kl": (p * (p / t).log()).sum(),
                "forward_kl": (t * (t / p).log()).sum(),
                "jeffreys": ((p - t) * (p / t).log()).sum() / 2,
                "jsd": recipe.jsd_beta * (t * (t / m).log()).sum() + (1 - recipe.jsd_beta) * (p * (p / m).log()).sum(),
            }[recipe.divergence]
        elif recipe.opd_form == "topk":
            opd = sum(binned(p[at], t[at], int(ids[at]), recipe) for at in range(first))
        else:
            gap = log_t[range(len(ids)), ids] - old
            bound = recipe.opd_advantage_clip or float("inf")
            opd = -(mask * w * ratio * gap.clamp(-bound, bound))[:first].sum()
        delta = log_b[range(len(ids)), ids] - own
        kl = (
            (whole * (whole / b).log()).sum()
            if recipe.kl_form == "full"
            else (mask * w * ratio * (delta.exp() - delta - 1)).sum()
        )
        weights = {"binary": (1, 0), "opd": (0, 1), "combined": (recipe.weight_rl, recipe.weight_opd)}[recipe.method]
        total = total + weights[0] * binary + weights[1] * opd + recipe.kl_beta * kl
    return total / (len(items) * recipe.mean_answer_length)
